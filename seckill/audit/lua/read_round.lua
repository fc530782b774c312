-- One consistent reading of a round. Run with EVALSHA_RO or EVAL_RO, so it cannot change anything.
--
-- KEYS  1 round (hash)   2 buyers (hash)   3 orders of the lane (stream)   4 home of the lane (string)
-- Reply {now_ms, number of buyers, backlog of the lane, id of its oldest entry or '', server and replication id that the
--       keeper has vouched for or '', replication id of this server or '' where no server is vouched for, field, value,
--       field, value, …}; no fields if the round is not here

local time = redis.call('TIME')
local oldest = redis.call('XRANGE', KEYS[3], '-', '+', 'COUNT', 1)[1]
local home = redis.call('GET', KEYS[4]) or ''
-- It is another one whenever the server has taken over or was started.
local replication_id = home ~= '' and string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''
local reply = {tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000),
               redis.call('HLEN', KEYS[2]), redis.call('XLEN', KEYS[3]), oldest and oldest[1] or '', home,
               replication_id}
for _, item in ipairs(redis.call('HGETALL', KEYS[1])) do reply[#reply + 1] = item end
return reply
