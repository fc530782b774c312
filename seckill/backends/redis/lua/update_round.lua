-- Brings a round to the rules of a revision. Repeated or late calls change nothing.
--
-- KEYS  1 round (hash)
-- ARGV  1 epoch   2 revision   3 status (open | paused | closed)   4 limit   5 begins_ms   6 ends_ms   7 units dealt
--       8 opened_ms (the opening that the ledger has noted)   9 cool_down_s
-- Reply applied | current | missing | other_epoch | other_opening

local round = redis.call('HMGET', KEYS[1], 'epoch', 'revision', 'total', 'opened_ms', 'dealt')
if not round[1] then return 'missing' end
if round[1] ~= ARGV[1] then return 'other_epoch' end
if round[4] ~= ARGV[8] then return 'other_opening' end
if tonumber(ARGV[2]) <= tonumber(round[2]) then return 'current' end
local added = tonumber(ARGV[7]) - tonumber(round[5] or round[3]) -- a round of an earlier version was dealt its total
if added < 0 then return redis.error_reply('ERR units can be added to a round, not taken away') end
redis.call('HSET', KEYS[1], 'revision', ARGV[2], 'status', ARGV[3], 'limit', ARGV[4],
           'begins_ms', ARGV[5], 'ends_ms', ARGV[6], 'dealt', ARGV[7], 'cool_down_s', ARGV[9])
redis.call('HINCRBY', KEYS[1], 'total', added)
redis.call('HINCRBY', KEYS[1], 'available', added)
redis.call('HINCRBY', KEYS[1], 'version', 1)
return 'applied'
