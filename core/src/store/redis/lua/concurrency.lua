-- Concurrency: leases, each until its end.
-- Value: a sorted set of leases by their ends. A lease of more than one unit is named ID:UNITS, and
--   then the member '#' (score -1) says that there are such: counting needs their names.
-- Numbers: limit, longest life, the new lease's identity.
-- Told: in use, when that shrinks, when the last ends, when enough has ended for the cost.
local function units(lease)
  return tonumber(string.match(lease, ':(%d+)$') or 1)
end

algorithms.c = {
  width = 4,

  see = function(key, at)
    local last = redis.pcall('ZRANGE', key, -1, -1, 'WITHSCORES')
    if last.err then
      return failed(last)
    end
    local seen = { used = 0, last = 0, latest = now + tonumber(ARGV[at + 3]) }
    if not last[2] then
      return tally(seen, at)
    end
    local live = '(' .. string.format('%.0f', now)
    local weighted = redis.call('ZSCORE', key, '#')
    if weighted then
      for _, lease in ipairs(redis.call('ZRANGEBYSCORE', key, live, '+inf')) do
        seen.used = seen.used + units(lease)
      end
    else
      seen.used = redis.call('ZCOUNT', key, live, '+inf')
    end
    local score = tonumber(last[2])
    seen.last = math.min(score, seen.latest)
    seen.mend = score > seen.latest or redis.call('ZCOUNT', key, '0', string.format('%.0f', now)) > 0
    local place = 0
    return tally(seen, at, function()
      -- Where every lease is one unit, the end that is needed has a known place.
      local skip = place
      if not weighted then
        local limit = tonumber(ARGV[at + 2])
        local for_next = math.max(seen.used - limit, 0)
        local for_cost = seen.used + tonumber(ARGV[at + 1]) - limit - 1
        skip = place == 0 and for_next or math.max(for_cost, place)
      end
      local lease = redis.call('ZRANGEBYSCORE', key, live, '+inf', 'WITHSCORES', 'LIMIT', skip, 1)
      if not lease[2] then
        return nil
      end
      local count = units(lease[1]) + skip - place
      place = skip + 1
      return math.min(tonumber(lease[2]), seen.latest), count
    end)
  end,

  write = function(seen, amount)
    local key, at = seen.key, seen.at
    redis.call('ZREMRANGEBYSCORE', key, 0, string.format('%.0f', now))
    local latest = string.format('%.0f', seen.latest)
    for _, lease in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. latest, '+inf')) do
      redis.call('ZADD', key, latest, lease)
    end
    if amount > 0 then
      local lease = ARGV[at + 4]
      if amount > 1 then
        lease = lease .. ':' .. string.format('%.0f', amount)
        redis.call('ZADD', key, -1, '#')
      end
      redis.call('ZADD', key, latest, lease)
      taken(seen, amount, seen.latest)
    end
    if seen.used == 0 then
      redis.call('DEL', key)
    else
      redis.call('PEXPIRE', key, milliseconds(seen.last))
    end
  end,

  tell = tell_tally,

  refund = function(seen, units, receipt, answer)
    local finish = redis.call('ZSCORE', seen.key, ARGV[receipt + 2])
    local given = 0
    if finish then
      redis.call('ZREM', seen.key, ARGV[receipt + 2])
      if tonumber(finish) > now then
        given = units
      end
    end
    answer[#answer + 1] = given
  end,
}
