-- Blocks a key.
--
-- KEYS: the block. ARGV: as the prelude says, then for how many microseconds.
set(KEYS[1], string.format('%.0f', now + tonumber(ARGV[3])), now + tonumber(ARGV[3]))
return 1
