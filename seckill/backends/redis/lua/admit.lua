-- Decides a batch of claims for one round, in their order, in one atomic step.
--
-- KEYS  1 round (hash)   2 buyers (hash)   3 orders of the lane (stream)   4 days of the lane (hash)   5 past (hash)
-- ARGV  1 backlog_max, then of all claims, each packed as one list: 2 users   3 quantities   4 request ids ('' of a buyer
--       who sent none). A separate argument for each would cost the server more than unpacking them. 5 the latest
--       epoch that the caller has seen of the round: in an earlier one, the server has gone back in time
-- Reply {now_ms, version, available, outcome 1, holdings 1, outcome 2, holdings 2, …}
--   available  '' if the round is not here, or not whole
--   outcome    invalid | not_ready | repeated | key_reused | cooling_down | limit_reached | not_started | ended |
--              paused | overloaded | sold_out | admitted: the first that applies, in this order
--   holdings   the order of a claim that was admitted, repeated or has its key reused, or the live orders of a buyer
--              at the limit, as they stand in the buyers hash or in past; or the ms when a buyer who is cooling down
--              may buy again
--
-- Lua does not roll back. So everything that can refuse or fail comes before the first write: the reads below raise
-- on a key of the wrong type, and the first write is the XADD, the only one that a full memory, a failing disk or
-- missing replicas can still refuse. Once it went through, the server lets the script finish.
--
-- Of a round that is not whole, nothing can be decided: without the records of its buyers, each could buy once more.
-- So whatever a lost key or field makes doubtful is `not_ready`, until the keeper has rebuilt the round.

local COUNTER_MAX = 16777215 -- 24 bits of the order number
local QUANTITY_MAX = 1000
local ORIGIN_S = 1577836800 -- 2020-01-01, the order number's zero
local DAYS_KEPT = 40
local COOL_DOWN_S_MAX = 3600
local DOUBLINGS_MAX = 12
local NOTE = 126 -- '~', which a record begins with if orders of the buyer are over

local time = redis.call('TIME')
local now_s = tonumber(time[1])
local now_ms = now_s * 1000 + math.floor(tonumber(time[2]) / 1000)
local users, quantities, request_ids = cmsgpack.unpack(ARGV[2]), cmsgpack.unpack(ARGV[3]), cmsgpack.unpack(ARGV[4])
local claims = #users

local round = redis.call('HMGET', KEYS[1], 'status', 'limit', 'begins_ms', 'ends_ms', 'available', 'admitted',
                         'version', 'epoch', 'id', 'lane', 'buyers', 'past', 'cool_down_s')
local status, known_buyers = round[1], redis.call('HLEN', KEYS[2])

local function is_whole()
  for i = 1, 10 do
    if not round[i] then return false end
  end
  if tonumber(round[8]) < tonumber(ARGV[5]) then return false end
  -- An earlier version did not count the buyers, but everyone who was ever admitted has a record.
  return known_buyers >= tonumber(round[11] or round[6] ~= '0' and 1 or 0) and
         redis.call('HLEN', KEYS[5]) >= tonumber(round[12] or '0')
end

-- Civil date from days since 1970, so that the day is the server's and not a client's.
local function day_of(seconds)
  local z = math.floor(seconds / 86400) + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local day = doy - math.floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format('%04d%02d%02d', year, month, day)
end
local today = day_of(now_s)
local counted = redis.call('HGET', KEYS[4], today)

-- Without a counter, numbers begin at 1: on a new day, or because it is lost. In the second of the loss they may have
-- been given out before. The stream remembers when its newest entry was made, also when that is settled.
local function numbers_are_new()
  if counted then return true end
  local stream = redis.pcall('XINFO', 'STREAM', KEYS[3])
  for i = 1, #stream, 2 do
    if stream[i] == 'last-generated-id' then return tonumber(string.match(stream[i + 1], '^%d+')) < now_s * 1000 end
  end
  return true
end

local function valid(quantity)
  return quantity == 1 or
         type(quantity) == 'number' and quantity >= 1 and quantity <= QUANTITY_MAX and quantity % 1 == 0
end

if not status or status == 'preparing' or not is_whole() or not numbers_are_new() then
  local reply = {now_ms, 0, ''}
  for i = 1, claims do
    reply[#reply + 1] = valid(quantities[i]) and 'not_ready' or 'invalid'
    reply[#reply + 1] = ''
  end
  return reply
end

local limit, begins_ms, ends_ms = tonumber(round[2]), tonumber(round[3]), tonumber(round[4])
local available, admitted = tonumber(round[5]), tonumber(round[6])
local cool_down_s = tonumber(round[13] or '0') -- a round of an earlier version has none
local backlog_max = tonumber(ARGV[1])
local backlog = redis.call('XLEN', KEYS[3])
local counter = tonumber(counted or '0')
if not counter then return redis.error_reply('WRONGTYPE the counter of today is not a number') end
local first_of_the_day = counter == 0

local records = redis.call('HMGET', KEYS[2], unpack(users))
local record_of = {} -- user → record, as it will be after this batch
for i = 1, claims do record_of[users[i]] = records[i] or '' end

-- Answers the questions about one buyer: a known request id? units and slots in use? which orders are live?
local function look_up(record, request_id)
  local units, taken, live, known = 0, {}, {}, nil
  for order, quantity, slot, id, alive in string.gmatch(record, '(%d+:%d+:(%d+):(%d+):([^: ]*):([01]))') do
    if request_id ~= '' and id == request_id then known = {order, tonumber(quantity)} end
    if alive == '1' then
      units = units + tonumber(quantity)
      taken[tonumber(slot)] = true
      live[#live + 1] = order
    end
  end
  return units, taken, live, known
end

-- An order that is over: its request id is known as long as the round is. Looked up only for buyers with such orders.
local function look_back(user, request_id)
  local orders = redis.call('HGET', KEYS[5], request_id .. ' ' .. user)
  local order, quantity = string.match(orders or '', '^(%d+:%d+:(%d+):%d+:[^: ]*:[01])')
  return order and {order, tonumber(quantity)}
end

-- When a buyer who has let orders lapse may buy again: each of them doubled the wait. What begins with late- is for
-- money that came late; no buyer's request id does.
local function cools_until(record, request_id)
  local lapses, lapsed_ms = string.match(record, '^~%d+:(%d+):(%d+)')
  if cool_down_s == 0 or lapses == '0' or string.sub(request_id, 1, 5) == 'late-' then return 0 end
  return lapsed_ms + 1000 * math.min(cool_down_s * 2 ^ math.min(lapses - 1, DOUBLINGS_MAX), COOL_DOWN_S_MAX)
end

local function refusal(units, quantity)
  if units + quantity > limit then return 'limit_reached' end
  if now_ms < begins_ms then return 'not_started' end
  if now_ms >= ends_ms or status == 'closed' then return 'ended' end
  if status == 'paused' then return 'paused' end
  if backlog >= backlog_max or counter >= COUNTER_MAX then return 'overloaded' end
  if available < quantity then return 'sold_out' end
  return nil
end

local reply = {now_ms, tonumber(round[7]), available}
local function answer(i, outcome, holdings)
  reply[2 * i + 2] = outcome
  reply[2 * i + 3] = holdings
end

-- Decide, on copies of the numbers. Most buyers are new and most claims plain, so nothing is made for these that they
-- do not need; the strings are put together by `..`, which is one step for a whole chain of them. It writes numbers as
-- decimal fractions, though, which takes longer than all the rest of the chain: hence the texts.
local seconds = string.format('%d', now_s - ORIGIN_S)
local head = '{"v":1,"round":' .. round[9] .. ',"epoch":' .. round[8] .. ',"lane":' .. round[10] .. ',"seconds":' ..
             seconds .. ',"at_ms":' .. string.format('%.0f', now_ms) .. ',"counter":'
local entries = {}
local changed = {} -- user, record, …; if a buyer is there twice, the last one counts
for i = 1, claims do
  local user, quantity, request_id = users[i], quantities[i], request_ids[i]
  if not valid(quantity) then
    answer(i, 'invalid', '')
  else
    local record, units, slot, again_ms, live, known = record_of[user], 0, 1, 0, nil, nil
    if record ~= '' then
      local taken
      units, taken, live, known = look_up(record, request_id)
      while taken[slot] do slot = slot + 1 end
      if not known and string.byte(record) == NOTE then
        known = request_id ~= '' and look_back(user, request_id)
        again_ms = cools_until(record, request_id)
      end
    end
    local refused = not known and (now_ms < again_ms and 'cooling_down' or refusal(units, quantity))
    if known then
      answer(i, known[2] == quantity and 'repeated' or 'key_reused', known[1])
    elseif refused == 'cooling_down' then
      answer(i, refused, string.format('%.0f', again_ms))
    elseif refused then
      answer(i, refused, live and refused == 'limit_reached' and table.concat(live, ' ') or '')
    else
      counter, backlog = counter + 1, backlog + 1
      available, admitted = available - quantity, admitted + quantity
      local number = string.format('%d', counter)
      local units_text, slot_text = quantity == 1 and '1' or quantity, slot == 1 and '1' or slot
      local order = seconds .. ':' .. number .. ':' .. units_text .. ':' .. slot_text .. ':' .. request_id .. ':1'
      if record == '' then known_buyers = known_buyers + 1 end
      record = record == '' and order or record .. ' ' .. order
      record_of[user] = record
      changed[#changed + 1] = user
      changed[#changed + 1] = record
      entries[#entries + 1] = head .. number .. ',"quantity":' .. units_text .. ',"slot":' .. slot_text .. ',"user":' ..
                              cjson.encode(user) .. ',"request":' ..
                              (request_id == '' and '""' or cjson.encode(request_id)) .. '}'
      answer(i, 'admitted', order)
    end
  end
end

-- Write.
if #entries > 0 then
  for i = 1, #entries do
    redis.call('XADD', KEYS[3], '*', 'order', entries[i])
  end
  redis.call('HSET', KEYS[2], unpack(changed))
  redis.call('HSET', KEYS[1], 'available', available, 'admitted', admitted, 'buyers', known_buyers)
  redis.call('HSET', KEYS[4], today, counter)
  if first_of_the_day then
    local oldest = day_of(now_s - DAYS_KEPT * 86400)
    for _, day in ipairs(redis.call('HKEYS', KEYS[4])) do
      if day < oldest then redis.call('HDEL', KEYS[4], day) end
    end
  end
end

reply[3] = available
return reply
