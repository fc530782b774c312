-- Notes which format a version must be able to read to work with this gate. It never falls: what a newer version has
-- written is still there when an older one comes back.
--
-- KEYS  1 stamp (hash)
-- ARGV  1 the format that the caller's writing needs   2 the caller's version
-- Reply {the format that is needed from now on, the version that has noted it}
local stamp, needs, version = KEYS[1], tonumber(ARGV[1]), ARGV[2]
if redis.call('TYPE', stamp).ok ~= 'hash' then
  redis.call('DEL', stamp)
end
local before = redis.call('HMGET', stamp, 'needs', 'by')
if needs <= (tonumber(before[1] or '') or 0) then
  return {before[1], before[2] or 'of a newer version'}
end
redis.call('HSET', stamp, 'needs', ARGV[1], 'by', version)
return {ARGV[1], version}
