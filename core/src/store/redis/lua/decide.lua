-- Decides groups of charges: each group is admitted and taken whole, or nothing of it is.
--
-- ARGV: for each group: how many keys may be blocked, how many charges it has, and what to do:
--         0 ask, 1 take, 2 refuse and only write back what is to be mended, 3 take what is there of
--         it, without asking
--       and for each charge: its algorithm's letter, its cost, and the algorithm's numbers
-- KEYS: for each group its blocks, then one for each charge, in the same order.
-- Answer: now; then for each group 1 (admitted) or 0 (refused) and what was seen of each charge; or 2
--   and the block's end; or 3 when the time fits none of the windows that were sent; or -i alone, when
--   the value of its key i is not ours. Of a group that is neither 1 nor 0 nothing was written.

local answer = { now }
local at, key = 3, 1
while ARGV[at] do
  local blocks, count, order = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), ARGV[at + 2]
  at = at + 3
  local first = key - 1
  local admitted, wrong, blocked, lost = order ~= '2', nil, 0, false
  for i = 1, blocks do
    local finish, err = get(KEYS[key])
    if err then
      return err
    elseif finish == nil or (finish and not string.match(finish, '^%d+$')) then
      wrong = wrong or key - first
    elseif finish and order ~= '3' then
      blocked = math.max(blocked, tonumber(finish))
    end
    key = key + 1
  end
  local group = {}
  for i = 1, count do
    local algorithm = algorithms[ARGV[at]]
    local seen, err = algorithm.see(KEYS[key], at, order == '3')
    if err then
      return err
    elseif seen then
      seen.key, seen.at, seen.algorithm = KEYS[key], at, algorithm
      seen.takes = order ~= '0' and ARGV[at + 1] ~= '0'
      admitted, lost = admitted and seen.fits, lost or seen.lost
      group[i] = seen
    else
      wrong = wrong or key - first
    end
    at, key = at + algorithm.width + 1, key + 1
  end
  if wrong then
    answer[#answer + 1] = -wrong
  elseif blocked > now then
    answer[#answer + 1], answer[#answer + 2] = 2, blocked
  elseif lost then
    answer[#answer + 1] = 3
  else
    local forced = order == '3'
    answer[#answer + 1] = (admitted or forced) and 1 or 0
    for i = 1, count do
      local seen = group[i]
      local amount = forced and seen.room or admitted and tonumber(ARGV[seen.at + 1]) or 0
      if seen.takes and (amount > 0 or seen.mend) then
        seen.algorithm.write(seen, amount)
      end
      seen.algorithm.tell(seen, answer)
    end
  end
end
return answer
