-- Reads a round in one consistent step. Changes nothing.
--
-- KEYS  1 round (hash)   2 buyers (hash)   3 past (hash)   4 orders of the lane (stream)   5 queue of the lane (hash)
-- Reply {now_ms, number of fields, of buyers, of records in past, backlog of the lane, field, value, field, value, …};
--       no fields if the round is not here. A number is -1 if the key has a value of another type.

local function size(command, key)
  local found = redis.pcall(command, key)
  return type(found) == 'number' and found or -1
end

local time = redis.call('TIME')
local reply = {tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000),
               size('HLEN', KEYS[1]), size('HLEN', KEYS[2]), size('HLEN', KEYS[3]), size('XLEN', KEYS[4])}
if reply[5] > 0 then
  local more = redis.pcall('HGET', KEYS[5], 'more') -- orders that share an entry with others
  reply[5] = reply[5] + tonumber(type(more) == 'string' and string.match(more, '^%d+$') or '0')
end
if reply[2] > 0 then
  for _, item in ipairs(redis.call('HGETALL', KEYS[1])) do reply[#reply + 1] = item end
end
return reply
