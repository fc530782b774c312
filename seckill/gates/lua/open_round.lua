-- Creates a round with its full stock, once. Nobody is admitted until `update_round` has run: in between, the ledger
-- notes that the round was opened, so that a gate which forgets it later is found out instead of filled again.
--
-- KEYS  1 round (hash)   2 buyers (hash)
-- ARGV  1 id   2 lane   3 epoch   4 total   5 limit   6 begins_ms   7 ends_ms
-- Reply created | exists | other_epoch | remnant (buyers without their round: part of the data is gone)

local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch then return epoch == ARGV[3] and 'exists' or 'other_epoch' end
if redis.call('EXISTS', KEYS[2]) == 1 then return 'remnant' end
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'lane', ARGV[2], 'epoch', ARGV[3], 'revision', 0, 'version', 1,
           'status', 'preparing', 'limit', ARGV[5], 'begins_ms', ARGV[6], 'ends_ms', ARGV[7],
           'total', ARGV[4], 'available', ARGV[4], 'admitted', 0, 'released', 0)
return 'created'
