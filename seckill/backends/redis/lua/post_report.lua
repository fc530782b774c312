-- Puts up the report of a process, and takes down those that have not been renewed for too long.
-- KEYS 1 sorted set of nodes by when they were last seen, in ms   2 hash node → report
-- ARGV 1 node   2 report   3 how long a report stays without being renewed, in ms
-- Reply how many were taken down
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
for i, type_ in ipairs({'zset', 'hash'}) do -- a foreign value is deleted: otherwise no report could be put up any more
  local found = redis.call('TYPE', KEYS[i]).ok
  if found ~= type_ and found ~= 'none' then redis.call('DEL', KEYS[i]) end
end
redis.call('ZADD', KEYS[1], now_ms, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local silent = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', now_ms - ARGV[3]))
for _, node in ipairs(silent) do
  redis.call('ZREM', KEYS[1], node)
  redis.call('HDEL', KEYS[2], node)
end
return #silent
