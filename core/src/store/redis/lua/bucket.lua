-- Token and leaky bucket: the instant at which it would be full, microseconds and a fraction of 1/q.
-- Value: whole x 1000 + fraction as one integer's text when q <= 1000, else whole:fraction.
-- Numbers: cost (whole, fraction), from empty to full (whole, fraction), q, 1 when it is a queue.
-- Told: whole, fraction.
algorithms.t = {
  width = 7,

  see = function(key, at)
    local stored, err = get(key)
    if stored == nil then
      return nil, err
    end
    local q = tonumber(ARGV[at + 6])
    local whole, fraction = 0, 0
    if stored then
      local w, f = string.match(stored, '^(%d+):(%d+)$')
      if not w then
        w, f = string.match(stored, '^(%d-)(%d?%d?%d)$')
        if w == '' then
          w = '0'
        end
      end
      if not w or #w > 16 or #f > 10 then
        return nil
      end
      whole, fraction = tonumber(w), tonumber(f)
      if fraction >= q then
        whole, fraction = whole + 1, 0
      end
    end
    local seen = {}
    local full, rest = now + tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
    if whole > full or (whole == full and fraction > rest) then
      whole, fraction, seen.mend = full, rest, true
    end
    seen.whole, seen.fraction = whole, fraction
    if whole < now then
      whole, fraction = now, 0
    end
    whole, fraction = whole + tonumber(ARGV[at + 2]), fraction + tonumber(ARGV[at + 3])
    if fraction >= q then
      whole, fraction = whole + 1, fraction - q
    end
    seen.fits = ARGV[at + 1] == '0' or whole < full or (whole == full and fraction <= rest)
    -- What is taken without asking empties it at most.
    if not seen.fits then
      whole, fraction = full, rest
    end
    seen.after, seen.rest, seen.room = whole, fraction, tonumber(ARGV[at + 1])
    return seen
  end,

  write = function(seen, amount)
    if amount > 0 then
      seen.whole, seen.fraction = seen.after, seen.rest
    end
    local whole, fraction = seen.whole, seen.fraction
    local text
    if tonumber(ARGV[seen.at + 6]) > 1000 then
      text = string.format('%.0f:%.0f', whole, fraction)
    elseif whole > 0 then
      text = string.format('%.0f%03.0f', whole, fraction)
    else
      text = string.format('%.0f', fraction)
    end
    set(seen.key, text, whole)
  end,

  tell = function(seen, answer)
    answer[#answer + 1] = seen.whole
    answer[#answer + 1] = seen.fraction
  end,

  -- Of a queue only the last may leave, and only before its turn.
  refund = function(seen, _, receipt, answer)
    local at, q = seen.at, tonumber(ARGV[seen.at + 6])
    local whole, fraction = seen.whole, seen.fraction
    local after, rest = whole - tonumber(ARGV[at + 2]), fraction - tonumber(ARGV[at + 3])
    if rest < 0 then
      after, rest = after - 1, rest + q
    end
    -- After a full drain what was taken has flowed in again.
    local since, drain = now - tonumber(ARGV[receipt]), tonumber(ARGV[at + 4])
    local counts = since < drain or (since == drain and tonumber(ARGV[at + 5]) > 0)
    local owed = counts and (whole > now or (whole == now and fraction > 0))
    local waits = after > now or (after == now and rest > 0)
    local last = tonumber(ARGV[receipt + 3]) == whole and tonumber(ARGV[receipt + 4]) == fraction
    if owed and (ARGV[at + 7] == '0' or (waits and last)) then
      answer[#answer + 1], answer[#answer + 2] = whole, fraction
      seen.whole, seen.fraction = now, 0
      if waits then
        seen.whole, seen.fraction = after, rest
      end
      algorithms.t.write(seen, 0)
    else
      answer[#answer + 1], answer[#answer + 2] = 0, 0
    end
  end,
}
