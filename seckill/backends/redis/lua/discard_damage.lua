-- Deletes a value under a key of a lane that none of our programs wrote, so that the right one can be made again.
--
-- KEYS  1 the key
-- ARGV  1 the type that the value must have. In a hash, every value must be a counter of order numbers, which has 24 bits: fields
--       with others are deleted.
--       A string is replaced by one that means nothing: without the home of its lane, a server that took over
--       would be taken for the first that the lane was ever on
-- Reply 1 if something was deleted, otherwise 0

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
