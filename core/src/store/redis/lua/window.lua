-- Fixed window: a count, and the window's number, or its start when it begins with a request.
-- Value: the count, then the number or start with as many digits as its last instant has.
-- Numbers: limit, period, 1 when it begins with a request, digits.
-- Told: the window's end, the count.
algorithms.f = {
  width = 5,

  see = function(key, at)
    local stored, err = get(key)
    if stored == nil then
      return nil, err
    end
    local period, digits = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 5])
    local first = ARGV[at + 4] == '1'
    local latest = first and now + period or now - now % period + period
    local seen = { finish = 0, count = 0 }
    if stored then
      if #stored <= digits or #stored > digits + 10 or string.find(stored, '%D') then
        return nil
      end
      local finish = tonumber(string.sub(stored, -digits))
      finish = first and finish + period or (finish + 1) * period
      if finish > now then
        seen.count = tonumber(string.sub(stored, 1, -digits - 1))
        seen.finish, seen.mend = math.min(finish, latest), finish > latest
      end
    end
    seen.latest = latest
    seen.room = math.max(math.min(tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]) - seen.count), 0)
    seen.fits = ARGV[at + 1] == '0' or seen.count + tonumber(ARGV[at + 1]) <= tonumber(ARGV[at + 2])
    return seen
  end,

  write = function(seen, amount)
    local at = seen.at
    if amount > 0 and seen.count == 0 then
      seen.finish = seen.latest
    end
    seen.count = seen.count + amount
    local period = tonumber(ARGV[at + 3])
    local window = ARGV[at + 4] == '1' and seen.finish - period or seen.finish / period - 1
    local text = string.format('%.0f%0' .. ARGV[at + 5] .. '.0f', seen.count, window)
    set(seen.key, text, seen.finish)
  end,

  tell = function(seen, answer)
    answer[#answer + 1] = seen.finish
    answer[#answer + 1] = seen.count
  end,

  refund = function(seen, units, receipt, answer)
    local instant = tonumber(ARGV[receipt])
    local given = 0
    if instant < seen.finish and instant >= seen.finish - tonumber(ARGV[seen.at + 3]) then
      given = math.min(units, seen.count)
      seen.count = seen.count - given
      if seen.count > 0 then
        algorithms.f.write(seen, 0)
      else
        redis.call('DEL', seen.key)
      end
    end
    answer[#answer + 1] = given
  end,
}
