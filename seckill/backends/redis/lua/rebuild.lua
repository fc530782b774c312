-- Rebuilds a round from the ledger, in three kinds of steps. It admits no one before `update_round` has run after the
-- last of them. Every `begin` makes all earlier ones void, so that two keepers cannot mix their readings.
--
-- KEYS  1 round (hash)   2 buyers (hash)   3 past (hash)
-- ARGV  1 begin: 2 id   3 lane   4 epoch   5 total   6 limit   7 begins_ms   8 ends_ms   9 a token of the caller's
--          10 cool_down_s
--       1 fence: 2 epoch
--       1 fill: 2 token   3 number of buyers, then two for each: user, record; then two for each order that is over:
--               field, order
--       1 finish: 2 token   3 units ever admitted   4 units ever released   5 opened_ms (of the share that was finished
--                 first; 0: now)   6 units got from other lanes less those sent, then two for each: 'sent:L' or 'got:L',
--                 units
-- Reply {word, opened_ms}
--       begin: done | current (the gate has the round in this epoch or a later one, open to buyers)
--       fence: done | void (the gate does not have the round, or in a later epoch)
--       finish: also early (in the second of the beginning: its order numbers may have been given out before the loss)
--       fill, finish: done | void (another rebuild has begun since)

local round = redis.call('HMGET', KEYS[1], 'epoch', 'status', 'rebuild', 'total', 'begun_s')
local time = redis.call('TIME')

if ARGV[1] == 'begin' then
  if round[1] and tonumber(round[1]) >= tonumber(ARGV[4]) and round[2] ~= 'preparing' then return {'current', 0} end
  redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
  redis.call('HSET', KEYS[1], 'id', ARGV[2], 'lane', ARGV[3], 'epoch', ARGV[4], 'revision', 0,
             'version', tonumber(ARGV[4]) * 1000000000, -- never one that a node has seen before
             'status', 'preparing', 'cool_down_s', ARGV[10], 'limit', ARGV[6], 'begins_ms', ARGV[7], 'ends_ms', ARGV[8],
             'dealt', ARGV[5], 'total', ARGV[5], 'available', 0, 'admitted', 0, 'released', 0,
             'buyers', 0, 'past', 0, 'rebuild', ARGV[9], 'begun_s', time[1])
  return {'done', 0}
end

if ARGV[1] == 'fence' then
  if not round[1] or tonumber(round[1]) > tonumber(ARGV[2]) then return {'void', 0} end
  redis.call('HSET', KEYS[1], 'status', 'preparing', 'opened_ms', 0) -- no update can open it again
  return {'done', 0}
end

if round[2] ~= 'preparing' or round[3] ~= ARGV[2] then return {'void', 0} end
if ARGV[1] == 'fill' then
  local last = 3 + 2 * tonumber(ARGV[3])
  local past = 0
  redis.call('HINCRBY', KEYS[1], 'buyers', redis.call('HSET', KEYS[2], unpack(ARGV, 4, last)))
  -- One by one: a single buyer may have more of them than a call takes arguments.
  for i = last + 1, #ARGV, 2 do past = past + redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1]) end
  redis.call('HINCRBY', KEYS[1], 'past', past)
  return {'done', 0}
end

if tonumber(time[1]) <= tonumber(round[5]) then return {'early', 0} end
local admitted, released = tonumber(ARGV[3]), tonumber(ARGV[4])
local total = tonumber(round[4]) + tonumber(ARGV[6])
local opened_ms = tonumber(ARGV[5])
if opened_ms == 0 then opened_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) end
redis.call('HSET', KEYS[1], 'admitted', admitted, 'released', released, 'total', total,
           'available', total - admitted + released, 'opened_ms', opened_ms, unpack(ARGV, 7))
redis.call('HDEL', KEYS[1], 'rebuild', 'begun_s')
return {'done', opened_ms}
