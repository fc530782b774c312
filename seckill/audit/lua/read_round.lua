-- One consistent reading of a round. Run with EVALSHA_RO or EVAL_RO, so it cannot change anything.
--
-- KEYS  1 round (hash)   2 buyers (hash)   3 past (hash); of the lane: 4 orders (stream)   5 days (hash)   6 home (string)   7 queue (hash)
-- Reply {now_ms, key under which something else stands or '', number of buyers, backlog of the lane, id of its oldest
--       entry or '', server and replication id that the keeper has vouched for or '', replication id of this server or
--       '' where no server is vouched for, field, value, field, value, …}; no fields if the round is not here. If
--       something else stands under a key, nothing is read

local TYPES = {'hash', 'hash', 'hash', 'stream', 'hash', 'string', 'hash'}
local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
for i, type_ in ipairs(TYPES) do
  local found = redis.call('TYPE', KEYS[i]).ok
  if found ~= type_ and found ~= 'none' then return {now_ms, KEYS[i]} end
end
for _, counter in ipairs(redis.call('HVALS', KEYS[5])) do
  if not string.find(counter, '^%d+$') or tonumber(counter) > 16777215 then return {now_ms, KEYS[5]} end
end
local oldest = redis.call('XRANGE', KEYS[4], '-', '+', 'COUNT', 1)[1]
local backlog = redis.call('XLEN', KEYS[4])
-- Orders that share an entry with others are counted besides, which says nothing of a stream that is empty.
if backlog > 0 then backlog = backlog + tonumber(string.match(redis.call('HGET', KEYS[7], 'more') or '', '^%d+$') or '0') end
local home = redis.call('GET', KEYS[6]) or ''
-- It is another one whenever the server has taken over or was started.
local replication_id = home ~= '' and string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''
local reply = {now_ms, '', redis.call('HLEN', KEYS[2]), backlog, oldest and oldest[1] or '', home,
               replication_id}
for _, item in ipairs(redis.call('HGETALL', KEYS[1])) do reply[#reply + 1] = item end
return reply
