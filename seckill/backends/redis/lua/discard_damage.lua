-- Deletes what stands under a key of a lane and was never written there by us, so that it can be made again.
--
-- KEYS  1 the key
-- ARGV  1 the type that it has to be of. Of a hash, every value has to be a number of an order, which has 24 bits: fields
--       with others are deleted.
--       In the place of a string comes one that says nothing: without the home of its lane, a server that took over
--       would be taken for the first that the lane was ever on
-- Reply 1 if there was something, otherwise 0

local found = redis.call('TYPE', KEYS[1]).ok
if found == 'none' then return 0 end
if found ~= ARGV[1] then
  redis.call('UNLINK', KEYS[1])
  if ARGV[1] == 'string' then redis.call('SET', KEYS[1], '?') end
  return 1
end
if found ~= 'hash' then return 0 end
local deleted = 0
local items = redis.call('HGETALL', KEYS[1])
for i = 1, #items, 2 do
  if not string.find(items[i + 1], '^%d+$') or tonumber(items[i + 1]) > 16777215 then deleted = redis.call('HDEL', KEYS[1], items[i]) end
end
return deleted
