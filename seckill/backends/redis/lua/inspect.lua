-- One consistent reading of a round. Changes nothing.
--
-- KEYS  1 round (hash)   2 buyers (hash)   3 past (hash)   4 orders of the lane (stream)
-- Reply {now_ms, number of buyers, number of records in past, backlog of the lane, field, value, field, value, …}; no fields if it is not here

local time = redis.call('TIME')
local reply = {tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000),
               redis.call('HLEN', KEYS[2]), redis.call('HLEN', KEYS[3]), redis.call('XLEN', KEYS[4])}
for _, item in ipairs(redis.call('HGETALL', KEYS[1])) do reply[#reply + 1] = item end
return reply
