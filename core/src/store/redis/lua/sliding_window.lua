-- Sliding window: the counts of now's window and of the one before.
-- Value: window number:current:previous.
-- Numbers: limit, period.
-- Told: the window's number, current, previous.

-- a x b as three limbs of base 2^20, the highest first; a below 2^32, b at most 2^50. A product
-- passes 2^53 already at 3 475 a month.
local function product(a, b)
  local low = b % 1048576
  local middle = (b - low) / 1048576 % 1048576
  local high = (b - low - middle * 1048576) / 1099511627776
  local p0 = a * low
  local r0 = p0 % 1048576
  local p1 = a * middle + (p0 - r0) / 1048576
  local r1 = p1 % 1048576
  return a * high + (p1 - r1) / 1048576, r1, r0
end

local function at_most(a, b, c, d)
  local a2, a1, a0 = product(a, b)
  local c2, c1, c0 = product(c, d)
  if a2 ~= c2 then
    return a2 < c2
  elseif a1 ~= c1 then
    return a1 < c1
  end
  return a0 <= c0
end

algorithms.w = {
  width = 3,

  see = function(key, at, forced)
    local stored, err = get(key)
    if stored == nil then
      return nil, err
    end
    local period = tonumber(ARGV[at + 3])
    local over = now % period
    local number = (now - over) / period
    local current, previous, mend = 0, 0, nil
    if stored then
      local n, c, p = string.match(stored, '^(%d+):(%d+):(%d+)$')
      if not n or #n > 16 or #c > 10 or #p > 10 then
        return nil
      end
      n, c, p = tonumber(n), tonumber(c), tonumber(p)
      if n >= number then
        current, previous, mend = c, p, n > number
      elseif n + 1 == number then
        previous = c
      end
    end
    local cost = tonumber(ARGV[at + 1])
    local left = period - over
    local function fits(units)
      local room = tonumber(ARGV[at + 2]) - current - units
      return room >= 0 and at_most(previous, left, room, period)
    end
    local seen = { number = number, current = current, previous = previous, mend = mend, left = left }
    seen.fits, seen.room = cost == 0 or fits(cost), cost
    if forced and not seen.fits then
      -- Without asking: as many units as fit.
      local low, high = 0, cost
      while high - low > 1 do
        local middle = math.floor((low + high) / 2)
        if fits(middle) then
          low = middle
        else
          high = middle
        end
      end
      seen.room = low
    end
    return seen
  end,

  write = function(seen, amount)
    seen.current = seen.current + amount
    local finish = now + seen.left
    if seen.current > 0 then
      finish = finish + tonumber(ARGV[seen.at + 3])
    end
    set(seen.key, string.format('%.0f:%.0f:%.0f', seen.number, seen.current, seen.previous), finish)
  end,

  tell = function(seen, answer)
    answer[#answer + 1] = seen.number
    answer[#answer + 1] = seen.current
    answer[#answer + 1] = seen.previous
  end,

  refund = function(seen, units, receipt, answer)
    local instant, period = tonumber(ARGV[receipt]), tonumber(ARGV[seen.at + 3])
    local charged = (instant - instant % period) / period
    local given = 0
    if charged == seen.number then
      given = math.min(units, seen.current)
      seen.current = seen.current - given
    elseif charged + 1 == seen.number then
      given = math.min(units, seen.previous)
      seen.previous = seen.previous - given
    end
    if given > 0 then
      if seen.current + seen.previous > 0 then
        algorithms.w.write(seen, 0)
      else
        redis.call('DEL', seen.key)
      end
    end
    answer[#answer + 1] = given
  end,
}
