-- Sliding log: one entry for each admitted request.
-- Value: a list: the total, then instant and cost of each entry, oldest first.
-- Numbers: limit, period.
-- Told: in use, when that shrinks, when all of it is out, when the cost fits.
algorithms.g = {
  width = 3,

  see = function(key, at)
    local total = redis.pcall('LINDEX', key, 0)
    if type(total) == 'table' then
      return failed(total)
    end
    local period = tonumber(ARGV[at + 3])
    local seen = { used = 0, last = 0, out = 0 }
    if not total then
      return tally(seen, at)
    end
    -- Entries are fetched by dozens: an admission needs the head only.
    local chunk, place, ours = {}, 1, whole(total)
    local function entry()
      local i = (place - 1) % 24 + 1
      if i == 1 then
        chunk = redis.call('LRANGE', key, place, place + 23)
      end
      local instant, count = whole(chunk[i]), whole(chunk[i + 1])
      if chunk[i] and not (instant and count) then
        ours = nil
      end
      place = place + 2
      return instant, count
    end
    local newest = whole(redis.call('LINDEX', key, -2))
    local instant, count = entry()
    seen.used = ours or 0
    while instant and count and instant + period <= now do
      seen.out, seen.used = seen.out + 1, seen.used - count
      instant, count = entry()
    end
    if not ours or not newest then
      return nil
    end
    seen.future, seen.last = newest > now, math.min(newest, now) + period
    seen.mend = seen.future or seen.out > 0
    tally(seen, at, function()
      local i, c = instant, count
      if not i then
        return nil
      end
      instant, count = entry()
      return math.min(i, now) + period, c
    end)
    return seen
  end,

  write = function(seen, amount)
    local key, at = seen.key, seen.at
    if seen.future then
      local place, oldest = redis.call('LLEN', key) - 2, 2 * seen.out
      while place > oldest and tonumber(redis.call('LINDEX', key, place)) > now do
        redis.call('LSET', key, place, string.format('%.0f', now))
        place = place - 2
      end
    end
    local total = string.format('%.0f', seen.used + amount)
    if seen.used == 0 then
      redis.call('DEL', key)
      if amount == 0 then
        return
      end
      redis.call('RPUSH', key, total)
    elseif seen.out > 0 then
      redis.call('LTRIM', key, 2 * seen.out + 1, -1)
      redis.call('LPUSH', key, total)
    else
      redis.call('LSET', key, 0, total)
    end
    if amount > 0 then
      redis.call('RPUSH', key, string.format('%.0f', now), string.format('%.0f', amount))
      taken(seen, amount, now + tonumber(ARGV[at + 3]))
    end
    redis.call('PEXPIRE', key, milliseconds(seen.last))
  end,

  tell = tell_tally,

  -- Its own entry, looked for from the newest.
  refund = function(seen, units, receipt, answer)
    local key = seen.key
    local instant, count = tonumber(ARGV[receipt]), tonumber(ARGV[receipt + 1])
    local given, place = 0, redis.call('LLEN', key) - 2
    while given == 0 and place > 2 * seen.out and instant + tonumber(ARGV[seen.at + 3]) > now do
      local from = math.max(place - 22, 1)
      local chunk = redis.call('LRANGE', key, from, place + 1)
      for i = #chunk - 1, 1, -2 do
        if tonumber(chunk[i]) == instant and tonumber(chunk[i + 1]) == count then
          given = math.min(units, count)
          place = from + i - 1
          break
        end
      end
      if given == 0 then
        place = from - 2
      end
    end
    answer[#answer + 1] = given
    if given == 0 then
      return
    elseif given == seen.used then
      redis.call('DEL', key)
      return
    elseif given == count then
      redis.call('LSET', key, place, 'x')
      redis.call('LSET', key, place + 1, 'x')
      redis.call('LREM', key, -2, 'x')
    else
      redis.call('LSET', key, place + 1, string.format('%.0f', count - given))
    end
    redis.call('LSET', key, 0, string.format('%.0f', tonumber(redis.call('LINDEX', key, 0)) - given))
  end,
}
