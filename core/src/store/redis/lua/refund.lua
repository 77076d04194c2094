-- Gives back what a decision took.
--
-- ARGV: for each charge its algorithm's letter, the units to give back, the algorithm's numbers, and
--       the receipt: the instant, the units that were taken, the lease, and a leaky bucket's instant
--       of fullness (whole, fraction)
-- KEYS: one for each charge, in the same order.
-- Answer: now; then for each the units that it gave back, or -1 for a value that is not ours. A bucket tells the
--   instant of fullness that it had (whole, fraction), or 0, 0 when it gave nothing: dividing is not
--   for a script.

local answer = { now }
local at = 3
for i = 1, #KEYS do
  local algorithm = algorithms[ARGV[at]]
  local receipt = at + algorithm.width + 1
  local seen, err = algorithm.see(KEYS[i], at)
  if err then
    return err
  elseif seen then
    seen.key, seen.at = KEYS[i], at
    algorithm.refund(seen, tonumber(ARGV[at + 1]), receipt, answer)
  else
    answer[#answer + 1] = -1
  end
  at = receipt + 5
end
return answer
