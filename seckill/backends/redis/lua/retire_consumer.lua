-- Deletes consumers that hold nothing and have long been silent. It is one step, because deleting a consumer also
-- deletes its pending entries, and between a look and a delete the consumer could come back.
--
-- KEYS  1 orders of the lane (stream)
-- ARGV  1 group   2 idle_ms   3 the caller's own name, which stays
-- Reply how many were deleted

local found = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
if found.err then return 0 end -- no such stream or group yet
local retired = 0
for _, pairs_ in ipairs(found) do
  local consumer = {}
  for i = 1, #pairs_, 2 do consumer[pairs_[i]] = pairs_[i + 1] end
  if consumer.pending == 0 and consumer.idle >= tonumber(ARGV[2]) and consumer.name ~= ARGV[3] then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer.name)
    retired = retired + 1
  end
end
return retired
