-- What log, buckets and leases have in common: things that end, in order.

-- Counts through the live ones, given by each() as end and count, oldest first, until it is known
-- when `remaining` grows and when enough has ended for the cost.
local function tally(seen, at, each)
  local limit, cost = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 1])
  seen.fits = cost == 0 or seen.used + cost <= limit
  seen.room = math.max(math.min(cost, limit - seen.used), 0)
  seen.next, seen.needed = 0, 0
  if seen.used == 0 then
    seen.last = 0
    return seen
  end
  local for_next = math.max(seen.used - limit, 0) + 1
  local for_cost = math.max(seen.used + cost - limit, 0)
  local ended = 0
  while ended < for_next or ended < for_cost do
    local finish, count = each()
    if not finish then
      break
    end
    ended = ended + count
    if seen.next == 0 and ended >= for_next then
      seen.next = finish
    end
    if seen.needed == 0 and for_cost > 0 and ended >= for_cost then
      seen.needed = finish
    end
  end
  return seen
end

-- After taking a cost that ends at `finish`, after all others.
local function taken(seen, cost, finish)
  if seen.used == 0 then
    seen.next = finish
  end
  seen.used, seen.last, seen.needed = seen.used + cost, math.max(seen.last, finish), 0
end

local function tell_tally(seen, answer)
  local n = #answer
  answer[n + 1], answer[n + 2], answer[n + 3], answer[n + 4] = seen.used, seen.next, seen.last, seen.needed
end
