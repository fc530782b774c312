-- One consistent reading of a round. Changes nothing.
--
-- KEYS  1 round (hash)   2 buyers (hash)   3 past (hash)   4 orders of the lane (stream)
-- Reply {now_ms, number of fields, of buyers, of records in past, backlog of the lane, field, value, field, value, …};
--       no fields if it is not here. A number is -1 if something else stands under the key.

local function size(command, key)
  local found = redis.pcall(command, key)
  return type(found) == 'number' and found or -1
end

local time = redis.call('TIME')
local reply = {tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000),
               size('HLEN', KEYS[1]), size('HLEN', KEYS[2]), size('HLEN', KEYS[3]), size('XLEN', KEYS[4])}
if reply[2] > 0 then
  for _, item in ipairs(redis.call('HGETALL', KEYS[1])) do reply[#reply + 1] = item end
end
return reply
