-- Rebuilds a round from the ledger, in three kinds of steps. The round admits no one until `update_round` has run after
-- the last of them. Every `begin` makes all earlier ones void, so that two keepers cannot mix their readings.
--
-- KEYS  1 round (hash)   2 buyers (hash)   3 past (hash)
-- ARGV  1 begin: 2 id   3 lane   4 epoch   5 total   6 limit   7 begins_ms   8 ends_ms   9 a token of the caller's
--          10 cool_down_s   11 siblings ('': none), then two for each item: its number, its units
--       1 fence: 2 epoch
--       1 fill: 2 token   3 number of buyers, then two for each: user, record; then two for each order that is over:
--               field, order; then, with an empty field before them, two for each who has bought as a person: person,
--               user
--       1 finish: 2 token   3 units ever admitted   4 units ever released   5 opened_ms (of the share that was finished
--                 first; 0: now)   6 units got from other lanes less those sent   7 how many items, then four for each:
--                 its number, and the same of it as 3, 4 and 6; then two for each that was got or sent: 'sent:L' or
--                 'got:L' (or 'sent:L:I', 'got:L:I', where there are items), units
-- Reply {word, opened_ms}
--       begin: done | current (the gate has the round in this epoch or a later one, open to buyers)
--       fence: done | void (the gate does not have the round, or in a later epoch, or in none: then it admits no one)
--       finish: also early (in the second of the beginning: its order numbers may have been given out before the loss)
--       fill, finish: done | void (another rebuild has begun since)

local EPOCH_DIGITS = 6 -- as in round_hash.py

-- A foreign value is not part of the round.
for i = 1, 3 do
  local found = redis.call('TYPE', KEYS[i]).ok
  if found ~= 'hash' and found ~= 'none' then redis.call('DEL', KEYS[i]) end
end
local round = redis.call('HMGET', KEYS[1], 'epoch', 'status', 'rebuild', 'total', 'begun_s')
local epoch = tonumber(round[1])
-- Lua also takes ` 5`, `0x5`, `5e9`, `inf` and `nan` for numbers. A round whose epoch we did not write has none.
if not string.find(round[1] or '', '^%d+$') or #round[1] > EPOCH_DIGITS then epoch = nil end
local time = redis.call('TIME')

if ARGV[1] == 'begin' then
  if epoch and epoch >= tonumber(ARGV[4]) and round[2] ~= 'preparing' then return {'current', 0} end
  redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
  redis.call('HSET', KEYS[1], 'id', ARGV[2], 'lane', ARGV[3], 'epoch', ARGV[4], 'revision', 0,
             'version', tonumber(ARGV[4]) * 1000000000, -- never one that a node has seen before
             'status', 'preparing', 'cool_down_s', ARGV[10], 'limit', ARGV[6], 'begins_ms', ARGV[7], 'ends_ms', ARGV[8],
             'dealt', ARGV[5], 'total', ARGV[5], 'available', 0, 'admitted', 0, 'released', 0,
             'buyers', 0, 'past', 0, 'rebuild', ARGV[9], 'begun_s', time[1])
  local items = {}
  if ARGV[11] ~= '' then redis.call('HSET', KEYS[1], 'siblings', ARGV[11]) end
  for i = 12, #ARGV, 2 do
    local item, units = ARGV[i], ARGV[i + 1]
    items[#items + 1] = item
    redis.call('HSET', KEYS[1], 'dealt:' .. item, units, 'total:' .. item, units, 'available:' .. item, 0,
               'admitted:' .. item, 0, 'released:' .. item, 0)
  end
  if #items > 0 then redis.call('HSET', KEYS[1], 'items', table.concat(items, ' ')) end
  return {'done', 0}
end

if ARGV[1] == 'fence' then
  if not epoch or epoch > tonumber(ARGV[2]) then return {'void', 0} end
  redis.call('HSET', KEYS[1], 'status', 'preparing', 'opened_ms', 0) -- no update can open it again
  return {'done', 0}
end

local function add_person(person, user)
  local there = redis.call('HGET', KEYS[2], '\n' .. person)
  if there and string.find('\n' .. there .. '\n', '\n' .. user .. '\n', 1, true) then return end
  redis.call('HSET', KEYS[2], '\n' .. person, there and there .. '\n' .. user or user)
  redis.call('HSET', KEYS[1], 'has_persons', 1)
  if not there then redis.call('HINCRBY', KEYS[1], 'buyers', 1) end
end

if round[2] ~= 'preparing' or round[3] ~= ARGV[2] then return {'void', 0} end
if ARGV[1] == 'fill' then
  local last = 3 + 2 * tonumber(ARGV[3])
  local past = 0
  redis.call('HINCRBY', KEYS[1], 'buyers', redis.call('HSET', KEYS[2], unpack(ARGV, 4, last)))
  -- One by one: a single buyer may have more orders than one call takes arguments.
  local i = last + 1
  while i <= #ARGV and ARGV[i] ~= '' do
    past = past + redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
    i = i + 2
  end
  redis.call('HINCRBY', KEYS[1], 'past', past)
  for person = i + 1, #ARGV, 2 do add_person(ARGV[person], ARGV[person + 1]) end
  return {'done', 0}
end

if tonumber(time[1]) <= tonumber(round[5]) then return {'early', 0} end
local admitted, released = tonumber(ARGV[3]), tonumber(ARGV[4])
local total = tonumber(round[4]) + tonumber(ARGV[6])
local opened_ms = tonumber(ARGV[5])
if opened_ms == 0 then opened_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) end
redis.call('HSET', KEYS[1], 'admitted', admitted, 'released', released, 'total', total,
           'available', total - admitted + released, 'opened_ms', opened_ms)
local carried = 8 + 4 * tonumber(ARGV[7])
for i = 8, carried - 1, 4 do
  local item, sold, back, moved = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local units = redis.call('HINCRBY', KEYS[1], 'total:' .. item, moved)
  redis.call('HSET', KEYS[1], 'admitted:' .. item, sold, 'released:' .. item, back,
             'available:' .. item, units - sold + back)
end
for i = carried, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('HDEL', KEYS[1], 'rebuild', 'begun_s')
return {'done', opened_ms}
