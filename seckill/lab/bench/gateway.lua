-- One buyer takes one unit, in one step: what teams write who do not want an application in the way.
-- KEYS 1 stock  2 buyers (a set)  3 stream of orders
-- ARGV 1 buyer
-- Reply 1 sold, 0 sold out, -1 has one
if redis.call("SISMEMBER", KEYS[2], ARGV[1]) == 1 then
  return -1
end
if tonumber(redis.call("GET", KEYS[1]) or "0") <= 0 then
  return 0
end
redis.call("DECR", KEYS[1])
redis.call("SADD", KEYS[2], ARGV[1])
redis.call("XADD", KEYS[3], "*", "user", ARGV[1])
return 1
