-- Gives back the units of orders that are over, each order's once, even if releases are repeated or arrive in another
-- order. Such orders move from the buyer's record, which every claim reads, to `past`, and the record notes that there
-- are some.
--
-- KEYS  1 round (hash)   2 buyers (hash)   3 past (hash)
-- ARGV  five for each release: user, order ('seconds:counter'), epoch (the round's, when the ledger decided it), the
--       order's request id ('' if it has none), and 1 if the buyer has let it lapse, otherwise 0
-- Reply {version, result 1, result 2, …}, each
--   released
--   already   the order is over here already
--   unknown   the buyer has no such order here: nothing to give back
--   not_yet   the round is not here, is not whole, or is being rebuilt: the release has to come again later
--
-- Everything is read before the first write, so a key of the wrong type changes nothing. All writes are made by one
-- command, so a user who may not run it changes nothing either. A round with a damaged buyer's record is fenced:
-- otherwise no one would learn that it has to be rebuilt, and the units would never come back.

local releases = #ARGV / 5
local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local round = redis.call('HMGET', KEYS[1], 'epoch', 'status', 'version', 'buyers', 'past', 'admitted', 'available',
                         'released', 'items')
-- Lua also takes ` 5`, `0x5`, `5e9`, `inf` and `nan` for numbers, but no gate writes them.
local function number(text)
  return text and #text < 16 and string.find(text, '^%-?%d+$') and tonumber(text)
end
local epoch = number(round[1]) or 0
-- There must be as many records as were counted; an earlier version did not count them.
local is_whole = redis.call('HLEN', KEYS[2]) >= (number(round[4] or (round[6] or '0') ~= '0' and '1' or '0') or math.huge)
                 and redis.call('HLEN', KEYS[3]) >= (number(round[5] or '0') or math.huge)
-- Only a number can be added to.
local adds_up = number(round[3]) and number(round[7]) and number(round[8])
-- For a round with items, by their numbers: the units that come back, those left, and those that ever came back.
local stock, names, counts = round[9] and {}, {}, {}
if stock then
  for item in string.gmatch(round[9], '%d+') do
    stock[item] = 0
    names[#names + 1] = 'available:' .. item
    names[#names + 1] = 'released:' .. item
  end
  counts = #names > 0 and redis.call('HMGET', KEYS[1], unpack(names)) or {false}
  for i = 1, #counts do adds_up = adds_up and number(counts[i]) end
end
if round[2] == 'preparing' or not is_whole or not adds_up then epoch = 0 end

-- The form of an order in a record: with its item, if the round has items.
local order_pattern = stock and '^%d+:%d+:%d+:%d+:%d+:[^: ]*:[01]$' or '^%d+:%d+:%d+:%d+:[^: ]*:[01]$'
local users = {}
for i = 1, releases do users[i] = ARGV[5 * i - 4] end
local records = redis.call('HMGET', KEYS[2], unpack(users))
local record_of = {}
for i = 1, releases do record_of[users[i]] = records[i] or '' end

local past_of, fields = {}, {} -- field → its orders, as they will be; and the fields that change
local function past(field)
  past_of[field] = past_of[field] or redis.call('HGET', KEYS[3], field) or ''
  return past_of[field]
end

-- The item comes before the request id, if the round has items. nil: the round has no such item.
local function item_of(held)
  local item = string.match(held, '^%d+:%d+:%d+:%d+:(%d+):[^: ]*:[01]$')
  return stock[item] and item
end

-- Moves an order that is over out of a record. Returns its units.
local function put_by(user, held)
  local number, quantity = string.match(held, '^(%d+:%d+):(%d+):')
  local request_id = string.match(held, '([^: ]*):[01]$')
  local field = (request_id == '' and number or request_id) .. ' ' .. user
  local others = past(field)
  past_of[field] = others == '' and held or others .. ' ' .. held
  fields[#fields + 1] = field
  return tonumber(quantity)
end

local function is_past(user, order, request_id)
  local orders = past((request_id == '' and order or request_id) .. ' ' .. user)
  return string.find(' ' .. orders, ' ' .. order .. ':', 1, true) ~= nil
end

local reply, changed, units, damaged = {0}, {}, 0, false
for i = 1, releases do
  local user, order, decided = users[i], ARGV[5 * i - 3], tonumber(ARGV[5 * i - 2])
  local request_id, lapsed = ARGV[5 * i - 1], ARGV[5 * i] == '1'
  local result = epoch < decided and 'not_yet' or 'unknown'
  if result == 'unknown' then
    local record, live, over = record_of[user], {}, {}
    damaged = damaged or records[i] == ''
    local note, gone, lapses, lapsed_ms = string.match(record, '^(~(%d+):(%d+):(%d+))')
    for held in string.gmatch(note and string.sub(record, #note + 1) or record, '[^ ]+') do
      damaged = damaged or not string.find(held, order_pattern) or (stock and not item_of(held))
      if damaged then break end
      if string.sub(held, 1, #order + 1) == order .. ':' then
        if string.sub(held, -1) == '1' then
          local quantity = tonumber(string.match(held, '^%d+:%d+:(%d+):'))
          result, units = 'released', units + quantity
          if stock then stock[item_of(held)] = stock[item_of(held)] + quantity end
          held = string.sub(held, 1, -2) .. '0'
        else
          result = 'already'
        end
      end
      if string.sub(held, -1) == '1' then live[#live + 1] = held else over[#over + 1] = held end
    end
    if result == 'released' and not damaged then
      gone, lapses, lapsed_ms = tonumber(gone or '0'), tonumber(lapses or '0'), tonumber(lapsed_ms or '0')
      for _, held in ipairs(over) do gone = gone + put_by(user, held) end
      if lapsed then lapses, lapsed_ms = lapses + 1, now_ms end
      record_of[user] = table.concat({string.format('~%d:%d:%.0f', gone, lapses, lapsed_ms), unpack(live)}, ' ')
      changed[#changed + 1] = user
    elseif result == 'unknown' and note and is_past(user, order, request_id) then
      result = 'already'
    end
  end
  reply[i + 1] = result
end

if damaged then
  redis.call('HSET', KEYS[1], 'status', 'preparing', 'opened_ms', 0) -- only a rebuild opens it again
  for i = 1, releases do reply[i + 1] = 'not_yet' end
elseif units > 0 then
  for _, field in ipairs(fields) do redis.call('HSET', KEYS[3], field, past_of[field]) end
  for _, user in ipairs(changed) do redis.call('HSET', KEYS[2], user, record_of[user]) end
  round[3] = number(round[3]) + 1
  local after = {'past', redis.call('HLEN', KEYS[3]), 'available', number(round[7]) + units,
                 'released', number(round[8]) + units, 'version', round[3]}
  for i, name in ipairs(names) do
    after[#after + 1] = name
    after[#after + 1] = number(counts[i]) + stock[string.match(name, '%d+')]
  end
  redis.call('HSET', KEYS[1], unpack(after))
end
reply[1] = tonumber(round[3]) or 0
return reply
