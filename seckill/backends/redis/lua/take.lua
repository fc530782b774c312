-- Puts units that another lane has sent on sale here. The share gets each unit once, however often and in whatever
-- order this is called, because it compares the units ever sent with those ever received. `share.lua` is put in front.
--
-- KEYS  1 round (hash)
-- ARGV  1 epoch   2 the other lane   3 units that it has ever sent here   4 of which item; left out where there are none
-- Reply how many units came with this call; -1 if none can come now, see `share_of`

local share = share_of(KEYS[1], ARGV[1], ARGV[4])
if not share then return -1 end
local from = 'got:' .. ARGV[2]
local units = tonumber(ARGV[3]) - count_of(share, from)
if units <= 0 then return 0 end
change(share, units, from, ARGV[3])
return units
