-- Ends leases.
--
-- KEYS: the sorted sets that may hold it. ARGV: now, or -1 for this server's time; the lease.
-- Answer: how many of them still counted.
local now = tonumber(ARGV[1])
if now < 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local ended = 0
for i = 1, #KEYS do
  local finish = redis.call('ZSCORE', KEYS[i], ARGV[2])
  if finish then
    redis.call('ZREM', KEYS[i], ARGV[2])
    if tonumber(finish) > now then
      ended = ended + 1
    end
  end
end
return ended
