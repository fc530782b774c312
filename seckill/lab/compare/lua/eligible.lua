-- May this person have a unit? Stock and "bought already" are checked and written in one step.
--
-- KEYS 1 stock  2 buyers, a set  3 counter of order numbers
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
return redis.call('INCR', KEYS[3])
