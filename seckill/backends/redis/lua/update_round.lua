-- Gives a round the rules of a revision. Repeated or late calls change nothing.
--
-- KEYS  1 round (hash)
-- ARGV  1 epoch   2 revision   3 status (open | line | paused | closed)   4 limit   5 begins_ms   6 ends_ms   7 units dealt
--       8 opened_ms (the opening that the ledger has noted)   9 cool_down_s, then two for each item: its number, the
--       units dealt of it
-- Reply applied | current | missing (the round, or a number of it) | other_epoch | other_opening

local round = redis.call('HMGET', KEYS[1], 'epoch', 'revision', 'total', 'opened_ms', 'dealt', 'available', 'version')
if not round[1] then return 'missing' end
for _, i in ipairs({2, 3, 5, 6, 7}) do
  -- such a field could not be added to
  if not string.find(round[i] or '', '^%-?%d+$') or #round[i] > 15 then return 'missing' end
end
if round[1] ~= ARGV[1] then return 'other_epoch' end
if round[4] ~= ARGV[8] then return 'other_opening' end
if tonumber(ARGV[2]) <= tonumber(round[2]) then return 'current' end
local added = tonumber(ARGV[7]) - tonumber(round[5])
local counts = {} -- name, number, …
for i = 10, #ARGV, 2 do
  local names = {'dealt:' .. ARGV[i], 'total:' .. ARGV[i], 'available:' .. ARGV[i]}
  local item = redis.call('HMGET', KEYS[1], unpack(names))
  if not (tonumber(item[1]) and tonumber(item[2]) and tonumber(item[3])) then return 'missing' end
  local more = tonumber(ARGV[i + 1]) - tonumber(item[1])
  for nth, name in ipairs(names) do
    counts[#counts + 1] = name
    counts[#counts + 1] = tonumber(item[nth]) + more
  end
  added = math.min(added, more < 0 and -1 or added)
end
if added < 0 then return redis.error_reply('ERR units can be added to a round, not taken away') end
-- All at once: if our user lost the right to a command between two writes, half would be written, and no later call
-- would mend that.
redis.call('HSET', KEYS[1], 'revision', ARGV[2], 'status', ARGV[3], 'limit', ARGV[4],
           'begins_ms', ARGV[5], 'ends_ms', ARGV[6], 'dealt', ARGV[7], 'cool_down_s', ARGV[9],
           'total', round[3] + added, 'available', round[6] + added, 'version', round[7] + 1, unpack(counts))
return 'applied'
