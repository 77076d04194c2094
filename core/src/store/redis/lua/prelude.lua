-- What all scripts begin with: the time, and how a value is read and written.
--
-- ARGV: now in microseconds since 1970, or -1 for this server's time
--       what a key outlives its state by, in milliseconds
--
-- Numbers are integers below 2^53. Stored times are text: 16 digits and a fraction don't fit a
-- double, and Lua's own conversion keeps only 14 digits.

local now = tonumber(ARGV[1])
if now < 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local margin = tonumber(ARGV[2])

-- Each has: how many numbers follow its letter, the cost first; see(key, at, forced), which returns what
-- is seen, whether the cost fits and how much of it there is room for, or nil and an error;
-- write(seen, amount); tell(seen, answer); refund(seen, units, receipt, answer).
local algorithms = {}

-- A reply that is an error: nil and the error, unless it only says that the value is not ours.
local function failed(reply)
  if string.sub(reply.err, 1, 9) == 'WRONGTYPE' then
    return nil
  end
  return nil, reply
end

local function get(key)
  local stored = redis.pcall('GET', key)
  if type(stored) == 'table' then
    return failed(stored)
  end
  return stored
end

-- A number that we may have written; nil for other text, also for what Lua takes for a number, as 'nan'.
local function whole(text)
  return text and #text <= 16 and string.match(text, '^%d+$') and tonumber(text) or nil
end

local function milliseconds(finish)
  return math.ceil((finish - now + 1) / 1000) + margin
end

local function set(key, text, finish)
  redis.call('SET', key, text, 'PX', milliseconds(finish))
end

