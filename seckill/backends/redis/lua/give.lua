-- Takes units from a share, to be got by the share of another lane. Until then they are on their way: sent, not got.
-- A call that is repeated finds that more was sent than its caller knew of, and gives nothing.
--
-- KEYS  1 round (hash)
-- ARGV  1 epoch   2 the other lane   3 units ever sent there, as far as the caller knows   4 units wanted, at most
-- Reply units ever sent there; -1 if the round is not here in this epoch, or not open

local to = 'sent:' .. ARGV[2]
local round = redis.call('HMGET', KEYS[1], 'epoch', 'status', 'total', 'available', to)
if round[1] ~= ARGV[1] or round[2] == 'preparing' then return -1 end
local available, sent = tonumber(round[4]), tonumber(round[5] or '0')
local units = math.min(available, tonumber(ARGV[4]))
if sent ~= tonumber(ARGV[3]) or units <= 0 then return sent end
redis.call('HSET', KEYS[1], to, sent + units, 'total', tonumber(round[3]) - units, 'available', available - units)
return sent + units
