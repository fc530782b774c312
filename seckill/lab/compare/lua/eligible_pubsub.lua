-- As eligible.lua, and the order is published in the same step.
--
-- KEYS 1 stock  2 buyers, a set  3 counter of order numbers  4 channel
-- ARGV 1 buyer
-- Reply the order's number; 0: sold out; -1: has one already
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then
  return -1
end
if tonumber(redis.call('GET', KEYS[1])) <= 0 then
  return 0
end
redis.call('DECR', KEYS[1])
redis.call('SADD', KEYS[2], ARGV[1])
local order = redis.call('INCR', KEYS[3])
redis.call('PUBLISH', KEYS[4], order .. ' ' .. ARGV[1])
return order
