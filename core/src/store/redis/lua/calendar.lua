-- Fixed window of a calendar: the client knows the zone and sends the starts of some windows around its
-- own time; this server's time picks.
-- Value: the count, then the window's start in seconds, ten digits.
-- Numbers: limit, the starts of four windows.
-- Told: the window's end, the count.
algorithms.k = {
  width = 6,

  see = function(key, at)
    local stored, err = get(key)
    if stored == nil then
      return nil, err
    end
    local seen = { finish = 0, count = 0 }
    for i = at + 3, at + 5 do
      if tonumber(ARGV[i]) <= now and now < tonumber(ARGV[i + 1]) then
        seen.start, seen.latest = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
      end
    end
    if not seen.start then
      seen.lost = true
      return seen
    end
    if stored then
      if #stored <= 10 or #stored > 20 or string.find(stored, '%D') then
        return nil
      end
      local start = tonumber(string.sub(stored, -10)) * 1000000
      if start >= seen.start then
        seen.count, seen.finish = tonumber(string.sub(stored, 1, -11)), seen.latest
        seen.mend = start > seen.start
      end
    end
    seen.room = math.max(math.min(tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]) - seen.count), 0)
    seen.fits = ARGV[at + 1] == '0' or seen.count + tonumber(ARGV[at + 1]) <= tonumber(ARGV[at + 2])
    return seen
  end,

  write = function(seen, amount)
    seen.count, seen.finish = seen.count + amount, seen.latest
    set(seen.key, string.format('%.0f%010.0f', seen.count, seen.start / 1000000), seen.finish)
  end,

  tell = function(seen, answer)
    answer[#answer + 1] = seen.finish
    answer[#answer + 1] = seen.count
  end,

  refund = function(seen, units, receipt, answer)
    local instant = tonumber(ARGV[receipt])
    local given = 0
    if not seen.lost and instant >= seen.start and instant < seen.latest then
      given = math.min(units, seen.count)
    end
    if given > 0 then
      if given < seen.count then
        algorithms.k.write(seen, -given)
      else
        redis.call('DEL', seen.key)
      end
    end
    answer[#answer + 1] = given
  end,
}
