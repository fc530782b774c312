-- Writes the orders of one entry again, each in an entry of its own, for readers that know no other form.
--
-- KEYS  1 orders of the lane (stream)   2 queue of the lane (hash)
-- ARGV  1 id of the entry, then the new entries
-- Reply 1, or 0 if it was gone

local entry_id, orders = ARGV[1], #ARGV - 1
if #redis.call('XRANGE', KEYS[1], entry_id, entry_id) == 0 then return 0 end
for i = 2, #ARGV do redis.call('XADD', KEYS[1], '*', 'order', ARGV[i]) end
for _, facts in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  for i = 1, #facts, 2 do
    if facts[i] == 'name' then redis.call('XACK', KEYS[1], facts[i + 1], entry_id) end
  end
end
redis.call('XDEL', KEYS[1], entry_id)
local more = tonumber(string.match(redis.call('HGET', KEYS[2], 'more') or '', '^%d+$') or '0')
redis.call('HSET', KEYS[2], 'more', math.max(0, more - orders + 1))
return 1
