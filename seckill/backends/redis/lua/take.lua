-- Puts units that another lane has sent on sale here. However often it is called, and in whatever order, the share has
-- got each unit once: what counts is how much was ever sent, and how much of that is here. Begins with `share.lua`.
--
-- KEYS  1 round (hash)
-- ARGV  1 epoch   2 the other lane   3 units that it has ever sent here   4 of which item, left out where there are none
-- Reply how many have come with this call; -1 if nothing can come now, see `share_of`

local share = share_of(KEYS[1], ARGV[1], ARGV[4])
if not share then return -1 end
local from = 'got:' .. ARGV[2]
local units = tonumber(ARGV[3]) - count_of(share, from)
if units <= 0 then return 0 end
change(share, units, from, ARGV[3])
return units
