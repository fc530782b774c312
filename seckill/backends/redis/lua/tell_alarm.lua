-- Decides whether a process has to send this message, or another has sent it or is just sending it.
-- KEYS 1 the last message sent about this trouble   2 the process that is sending one
-- ARGV 1 the message   2 the process that asks   3 how long a process may take to send one, in ms
-- Reply 'told', 'wait', or 'go': the process that asks has to send it
if redis.call('GET', KEYS[1]) == ARGV[1] then return 'told' end
local telling = redis.call('GET', KEYS[2])
if telling and telling ~= ARGV[2] then return 'wait' end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 'go'
