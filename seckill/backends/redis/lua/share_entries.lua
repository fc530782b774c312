-- Lets calls write entries with several orders into a lane, unless that was forbidden because a version that is about
-- to come back could not read them.
--
-- KEYS  1 queue of the lane (hash)
-- Reply the form that entries may have from now on; 1: no entries with several orders

local form = redis.call('HGET', KEYS[1], 'form')
if not form then
  form = '2'
  redis.call('HSET', KEYS[1], 'form', form)
end
return form
