-- Puts units that another lane has sent on sale here. However often it is called, and in whatever order, the share has
-- got each unit once: what counts is how much was ever sent, and how much of that is here.
--
-- KEYS  1 round (hash)
-- ARGV  1 epoch   2 the other lane   3 units that it has ever sent here
-- Reply how many have come with this call; -1 if the round is not here in this epoch, or not open

local from = 'got:' .. ARGV[2]
local round = redis.call('HMGET', KEYS[1], 'epoch', 'status', 'total', 'available', from)
if round[1] ~= ARGV[1] or round[2] == 'preparing' then return -1 end
local units = tonumber(ARGV[3]) - tonumber(round[5] or '0')
if units <= 0 then return 0 end
redis.call('HSET', KEYS[1], from, ARGV[3], 'total', tonumber(round[3]) + units, 'available', tonumber(round[4]) + units)
return units
