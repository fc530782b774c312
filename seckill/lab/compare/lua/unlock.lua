-- Lets go of a lock, if it is still ours.
--
-- KEYS 1 lock
-- ARGV 1 who holds it
-- Reply 1: let go; 0: it was not ours any more
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
