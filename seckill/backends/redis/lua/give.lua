-- Takes units from a share for the share of another lane. Until that one gets them they are on their way: sent but not
-- got. A repeated call finds that more was sent than its caller knew of, and gives nothing. `share.lua` is put in
-- front.
--
-- KEYS  1 round (hash)
-- ARGV  1 epoch   2 the other lane   3 units ever sent there, as far as the caller knows   4 units wanted, at most
--       5 of which item; left out where there are none
-- Reply units ever sent there; -1 if nothing can be sent now, see `share_of`

local share = share_of(KEYS[1], ARGV[1], ARGV[5])
if not share then return -1 end
local to = 'sent:' .. ARGV[2]
local sent = count_of(share, to)
local units = math.min(share.left, tonumber(ARGV[4]))
if sent ~= tonumber(ARGV[3]) or units <= 0 then return sent end
change(share, -units, to, sent + units)
return sent + units
