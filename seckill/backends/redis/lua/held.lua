-- Reads what one buyer has in each of these rounds. Changes nothing.
--
-- KEYS  for each round in turn: round (hash), buyers (hash), past (hash)
-- ARGV  1 user   2 … fields of the round that tell whether it is whole
-- Reply for each round, the buyer's record, which tells everything; if there is none, {number of buyers, of records in past,
--       the fields}: a buyer without a record in a whole round has nothing there. A number is -1, and there are no
--       fields, if the key has a value of another type.

local fields = {}
for i = 2, #ARGV do fields[i - 1] = ARGV[i] end

local function size(key)
  local found = redis.pcall('HLEN', key)
  return type(found) == 'number' and found or -1
end

local reply = {}
for i = 1, #KEYS, 3 do
  local record = redis.pcall('HGET', KEYS[i + 1], ARGV[1])
  if type(record) ~= 'string' then
    local found = redis.pcall('HMGET', KEYS[i], unpack(fields))
    if found.err then found = false end
    record = {size(KEYS[i + 1]), size(KEYS[i + 2]), found}
  end
  reply[#reply + 1] = record
end
return reply
