-- Whether a process is to tell people this message, or another has told it or is just telling it.
-- KEYS 1 the message about this trouble that was told last   2 who is telling one
-- ARGV 1 the message   2 who asks   3 how long a process may take to tell one, in ms
-- Reply 'told', 'wait', or 'go': whoever asks is the one who tells it
if redis.call('GET', KEYS[1]) == ARGV[1] then return 'told' end
local telling = redis.call('GET', KEYS[2])
if telling and telling ~= ARGV[2] then return 'wait' end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 'go'
