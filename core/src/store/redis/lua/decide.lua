-- Decides groups of charges: each group is admitted and taken whole, or nothing of it is.
--
-- ARGV: now in microseconds since 1970, or -1 for this server's time
--       what a key outlives its state by, in milliseconds
--       then for each group: how many charges it has, and what to do:
--         0 ask, 1 take, 2 refuse and only write back what is to be mended
--       and for each charge: its algorithm's letter, its cost, and the algorithm's numbers
-- KEYS: one for each charge, in the same order.
-- Answer: now; then for each group 1 (admitted) or 0 (refused) and what was seen of each charge, or
--   -i alone, when the value of its charge i is not ours: nothing of that group was written.
--
-- Numbers are integers below 2^53. Stored times are text: 16 digits and a fraction don't fit a
-- double, and Lua's own conversion keeps only 14 digits.

local now = tonumber(ARGV[1])
if now < 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local margin = tonumber(ARGV[2])

-- Each has: how many numbers it is given; see(key, at), which returns what is seen and whether the
-- cost fits, or nil and an error; write(seen, admitted); tell(seen, answer).
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

local function milliseconds(finish)
  return math.ceil((finish - now + 1) / 1000) + margin
end

local function set(key, text, finish)
  redis.call('SET', key, text, 'PX', milliseconds(finish))
end

--ALGORITHMS

local answer = { now }
local at, key = 3, 1
while ARGV[at] do
  local count, order = tonumber(ARGV[at]), ARGV[at + 1]
  at = at + 2
  local admitted, wrong = order ~= '2', nil
  local group = {}
  for i = 1, count do
    local algorithm = algorithms[ARGV[at]]
    local seen, err = algorithm.see(KEYS[key], at)
    if err then
      return err
    elseif seen then
      seen.key, seen.at, seen.algorithm = KEYS[key], at, algorithm
      seen.takes = order ~= '0' and ARGV[at + 1] ~= '0'
      admitted = admitted and seen.fits
      group[i] = seen
    else
      wrong = wrong or i
    end
    at, key = at + algorithm.width + 1, key + 1
  end
  if wrong then
    answer[#answer + 1] = -wrong
  else
    answer[#answer + 1] = admitted and 1 or 0
    for i = 1, count do
      local seen = group[i]
      if seen.takes and (admitted or seen.mend) then
        seen.algorithm.write(seen, admitted)
      end
      seen.algorithm.tell(seen, answer)
    end
  end
end
return answer
