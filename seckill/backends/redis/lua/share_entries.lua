-- Lets calls write entries of several orders into a lane, unless it was said that they must not: a version that is about
-- to come back could not read them.
--
-- KEYS  1 queue of the lane (hash)
-- Reply the form that entries of several orders may have from now on; 1: none

local form = redis.call('HGET', KEYS[1], 'form')
if not form then
  form = '2'
  redis.call('HSET', KEYS[1], 'form', form)
end
return form
