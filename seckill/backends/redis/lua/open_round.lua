-- Creates a round with its full stock, once. The round admits no one until `update_round` has run. In between, the
-- ledger notes that it was opened, so that a gate which forgets it later is noticed instead of being filled again.
--
-- KEYS  1 round (hash)   2 buyers (hash)   3 past (hash)
-- ARGV  1 id   2 lane   3 epoch   4 total   5 limit   6 begins_ms   7 ends_ms
--       8 opened_ms (of the share that was opened first; 0: now)   9 cool_down_s   10 siblings ('': none), then two
--       for each item: its number, its units
-- Reply {found, opened_ms}: found is
--   nothing (so it was created) | round | other_epoch | remnant (buyers without their round: some of the data is gone)

local round = redis.call('HMGET', KEYS[1], 'epoch', 'opened_ms')
if round[1] then return {round[1] == ARGV[3] and 'round' or 'other_epoch', tonumber(round[2])} end
if redis.call('EXISTS', KEYS[2], KEYS[3]) > 0 then return {'remnant', 0} end
local time = redis.call('TIME')
local opened_ms = tonumber(ARGV[8])
if opened_ms == 0 then opened_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) end
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'lane', ARGV[2], 'epoch', ARGV[3], 'revision', 0, 'version', 1,
           'status', 'preparing', 'cool_down_s', ARGV[9], 'limit', ARGV[5], 'begins_ms', ARGV[6], 'ends_ms', ARGV[7],
           'dealt', ARGV[4], 'total', ARGV[4], 'available', ARGV[4], 'admitted', 0, 'released', 0, 'opened_ms', opened_ms,
           'buyers', 0, 'past', 0)
local items = {}
if ARGV[10] ~= '' then redis.call('HSET', KEYS[1], 'siblings', ARGV[10]) end
for i = 11, #ARGV, 2 do
  local item, units = ARGV[i], ARGV[i + 1]
  items[#items + 1] = item
  redis.call('HSET', KEYS[1], 'dealt:' .. item, units, 'total:' .. item, units, 'available:' .. item, units,
             'admitted:' .. item, 0, 'released:' .. item, 0)
end
if #items > 0 then redis.call('HSET', KEYS[1], 'items', table.concat(items, ' ')) end
return {'nothing', opened_ms}
