-- Gives back the units of orders that are over, each order once, whatever is repeated or comes in another order.
--
-- KEYS  1 round (hash)   2 buyers (hash)
-- ARGV  three for each release: user, order ('seconds:counter'), epoch (the round's, when the ledger decided it)
-- Reply {version, result 1, result 2, …}, each
--   released
--   already   the order is over here already
--   unknown   the buyer has no such order here: nothing to give back
--   not_yet   the round is not here, or is being rebuilt: the release has to come again later

local releases = #ARGV / 3
local round = redis.call('HMGET', KEYS[1], 'epoch', 'status', 'version')
local epoch = tonumber(round[1] or '0')
if round[2] == 'preparing' then epoch = 0 end

local users = {}
for i = 1, releases do users[i] = ARGV[3 * i - 2] end
local records = redis.call('HMGET', KEYS[2], unpack(users))
local record_of = {}
for i = 1, releases do record_of[users[i]] = records[i] or '' end

local reply, changed, units = {0}, {}, 0
for i = 1, releases do
  local user, order, decided = users[i], ARGV[3 * i - 1] .. ':', tonumber(ARGV[3 * i])
  local result = epoch < decided and 'not_yet' or 'unknown'
  if result == 'unknown' then
    local kept = {}
    for held in string.gmatch(record_of[user], '[^ ]+') do
      if string.sub(held, 1, #order) == order then
        local quantity = tonumber(string.match(held, '^%d+:%d+:(%d+):'))
        if string.sub(held, -1) == '1' then
          result, units = 'released', units + quantity
          held = string.sub(held, 1, -2) .. '0'
        else
          result = 'already'
        end
      end
      kept[#kept + 1] = held
    end
    if result == 'released' then
      record_of[user] = table.concat(kept, ' ')
      changed[#changed + 1] = user
      changed[#changed + 1] = record_of[user]
    end
  end
  reply[i + 1] = result
end

if units > 0 then
  for i = 1, #changed, 2 do changed[i + 1] = record_of[changed[i]] end -- a buyer may stand there twice
  redis.call('HSET', KEYS[2], unpack(changed))
  redis.call('HINCRBY', KEYS[1], 'available', units)
  redis.call('HINCRBY', KEYS[1], 'released', units)
  round[3] = redis.call('HINCRBY', KEYS[1], 'version', 1)
end
reply[1] = tonumber(round[3] or '0')
return reply
