-- Sliding log in buckets: a counter for each sub-window; one that overlaps the period counts whole.
-- Value: the newest sub-window's number, then the counts, newest first, without the last zeros.
-- Numbers: limit, period, buckets.
-- Told: in use, when that shrinks, when all of it is out, when the cost fits.
algorithms.b = {
  width = 4,

  see = function(key, at)
    local stored, err = get(key)
    if stored == nil then
      return nil, err
    end
    local period, buckets = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    local width = period / buckets
    local index = (now - now % width) / width
    local seen = { used = 0, last = 0, index = index, width = width, counts = {} }
    local oldest = 0
    if stored then
      if not string.find(stored, '^%d+[:%d]*$') or #string.match(stored, '^%d+') > 16 then
        return nil
      end
      local newest
      for number in string.gmatch(stored, '%d+') do
        if not newest then
          newest = tonumber(number)
          seen.mend = newest > index
        else
          -- Later than now's counts into now's.
          local age = math.max(index - newest, 0)
          if age <= buckets and age <= index then
            local count = tonumber(number)
            seen.counts[age] = (seen.counts[age] or 0) + count
            seen.used = seen.used + count
            if count > 0 then
              oldest = math.max(oldest, age)
              seen.newest = math.min(seen.newest or age, age)
            end
          end
          newest = newest - 1
        end
      end
    end
    local function finish(age)
      return (index - age + 1) * width + period
    end
    seen.oldest = oldest
    if seen.newest then
      seen.last = finish(seen.newest)
    end
    local age = oldest + 1
    return tally(seen, at, function()
      repeat
        age = age - 1
      until age < 0 or (seen.counts[age] or 0) > 0
      if age < 0 then
        return nil
      end
      return finish(age), seen.counts[age]
    end)
  end,

  write = function(seen, amount)
    if amount > 0 then
      seen.counts[0] = (seen.counts[0] or 0) + amount
      taken(seen, amount, (seen.index + 1) * seen.width + tonumber(ARGV[seen.at + 3]))
    end
    local parts = { string.format('%.0f', seen.index) }
    for age = 0, seen.oldest do
      parts[age + 2] = string.format('%.0f', seen.counts[age] or 0)
    end
    set(seen.key, table.concat(parts, ':'), seen.last)
  end,

  tell = tell_tally,

  refund = function(seen, units, receipt, answer)
    local instant = tonumber(ARGV[receipt])
    local age = seen.index - (instant - instant % seen.width) / seen.width
    local given = math.min(units, age >= 0 and seen.counts[age] or 0)
    if given > 0 then
      seen.counts[age] = seen.counts[age] - given
      if given == seen.used then
        redis.call('DEL', seen.key)
      else
        algorithms.b.write(seen, 0)
      end
    end
    answer[#answer + 1] = given
  end,
}
