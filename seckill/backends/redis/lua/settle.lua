-- Settles entries: acknowledges them, deletes them from the stream, and takes their orders off the count.
--
-- KEYS  1 orders of the lane (stream)   2 queue of the lane (hash)
-- ARGV  1 group, then two for each entry: its id, and how many orders are in it
-- Reply {orders of entries that were acknowledged, of entries that were deleted}

local acknowledged, deleted, shared = 0, 0, 0
local alone = {} -- ids of entries with one order: these can be dealt with together
for i = 2, #ARGV, 2 do
  local orders = tonumber(ARGV[i + 1])
  if orders == 1 then
    alone[#alone + 1] = ARGV[i]
  else
    acknowledged = acknowledged + orders * redis.call('XACK', KEYS[1], ARGV[1], ARGV[i])
    if redis.call('XDEL', KEYS[1], ARGV[i]) == 1 then
      deleted, shared = deleted + orders, shared + orders - 1
    end
  end
end
if #alone > 0 then
  acknowledged = acknowledged + redis.call('XACK', KEYS[1], ARGV[1], unpack(alone))
  deleted = deleted + redis.call('XDEL', KEYS[1], unpack(alone))
end
if shared > 0 then
  local more = tonumber(string.match(redis.call('HGET', KEYS[2], 'more') or '', '^%d+$') or '0')
  if redis.call('XLEN', KEYS[1]) == 0 then more = 0 end
  redis.call('HSET', KEYS[2], 'more', math.max(0, more - shared))
end
return {acknowledged, deleted}
