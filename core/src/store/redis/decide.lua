-- Decides one group of charges: every limit admits and all are charged, or nothing is.
--
-- KEYS: one for each limit.
-- ARGV: now in microseconds since 1970, or -1 for this server's time
--       "1" to take, "0" to ask, "2" to refuse and only write back what came from the future
--       what a key outlives its state by, in milliseconds
--       then for each limit, in the order of the keys:
--         "t" cost.whole cost.fraction full.whole full.fraction q
--         "f" cost limit period anchored-at-first width
-- Answer: verdict (1 admitted, 0 refused, -i when the value of key i is not ours), now, and for
--   each limit its state: the instant of fullness (whole, fraction), or a window's end and count.
--
-- Numbers are integers below 2^53; stored times are text, since 16 digits and a fraction don't fit
-- a double.

local now = tonumber(ARGV[1])
if now < 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local writes = ARGV[2] ~= '0'
local margin = tonumber(ARGV[3])

local admitted = ARGV[2] ~= '2'
local future = {}
local a, b = {}, {}
local stop = {}
local at = 4

for i = 1, #KEYS do
  local stored = redis.pcall('GET', KEYS[i])
  if type(stored) == 'table' then
    if string.sub(stored.err, 1, 9) ~= 'WRONGTYPE' then
      return stored
    end
    return { -i, now }
  end
  if ARGV[at] == 't' then
    local q = tonumber(ARGV[at + 5])
    local whole, fraction = 0, 0
    if stored then
      local w, f = string.match(stored, '^(%d+):(%d+)$')
      if not w then
        w, f = string.match(stored, '^(%d-)(%d?%d?%d)$')
        if w == '' then
          w = '0'
        end
      end
      if not w or #w > 16 then
        return { -i, now }
      end
      whole, fraction = tonumber(w), tonumber(f)
      if fraction >= q then
        whole, fraction = whole + 1, 0
      end
    end
    local full, rest = now + tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    if whole > full or (whole == full and fraction > rest) then
      whole, fraction, future[i] = full, rest, true
    end
    a[i], b[i] = whole, fraction
    if whole < now then
      whole, fraction = now, 0
    end
    whole, fraction = whole + tonumber(ARGV[at + 1]), fraction + tonumber(ARGV[at + 2])
    if fraction >= q then
      whole, fraction = whole + 1, fraction - q
    end
    if whole > full or (whole == full and fraction > rest) then
      admitted = false
    end
    stop[i] = { whole, fraction }
    at = at + 6
  else
    local cost, limit, period = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    local first, width = ARGV[at + 4] == '1', tonumber(ARGV[at + 5])
    local latest = first and now + period or now - now % period + period
    local finish, count = 0, 0
    if stored then
      if #stored <= width or #stored > width + 10 or string.find(stored, '%D') then
        return { -i, now }
      end
      count = tonumber(string.sub(stored, 1, -width - 1))
      finish = tonumber(string.sub(stored, -width))
      finish = first and finish + period or (finish + 1) * period
      if finish <= now then
        finish, count = 0, 0
      elseif finish > latest then
        finish, future[i] = latest, true
      end
    end
    a[i], b[i] = finish, count
    if count == 0 then
      finish = latest
    end
    if count + cost > limit then
      admitted = false
    end
    stop[i] = { finish, count + cost }
    at = at + 6
  end
end

at = 4
for i = 1, #KEYS do
  if writes and (admitted or future[i]) then
    if admitted then
      a[i], b[i] = stop[i][1], stop[i][2]
    end
    local text
    if ARGV[at] == 't' then
      if tonumber(ARGV[at + 5]) > 1000 then
        text = string.format('%.0f:%.0f', a[i], b[i])
      elseif a[i] > 0 then
        text = string.format('%.0f%03.0f', a[i], b[i])
      else
        text = string.format('%.0f', b[i])
      end
    else
      local period = tonumber(ARGV[at + 3])
      local window = ARGV[at + 4] == '1' and a[i] - period or a[i] / period - 1
      text = string.format('%.0f%0' .. ARGV[at + 5] .. '.0f', b[i], window)
    end
    redis.call('SET', KEYS[i], text, 'PX', math.ceil((a[i] - now + 1) / 1000) + margin)
  end
  at = at + 6
end

local answer = { admitted and 1 or 0, now }
for i = 1, #KEYS do
  answer[2 * i + 1], answer[2 * i + 2] = a[i], b[i]
end
return answer
