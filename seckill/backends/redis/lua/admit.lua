-- Decides a batch of claims for one round, in their order, in one atomic step.
--
-- KEYS  1 round (hash)   2 buyers (hash)   3 orders of the lane (stream)   4 its days (hash)   5 past (hash)   6 queue of the lane (hash)
-- ARGV  1 backlog_max, then of all claims, each packed as one list: 2 users   3 quantities   4 request ids ('' of a buyer
--       who sent none). A separate argument for each would cost the server more than unpacking them.   5 the latest
--       epoch of the round that the caller has seen: in an earlier one, the server has gone back in time.   6 the claims'
--       metadata, packed like these ('' for a claim without); left out if no claim of the batch has any   7 their
--       items, numbers packed like these (0 for a claim without); left out as well, and never given without 6   8 how
--       many ms earlier than others the claims' buyers may buy, packed like these; left out if none may, and never
--       given without 7   9 the persons by whom the limit counts, packed like these ('' for a claim without); left out
--       if none has one, and never given without 8   10 the claims' traces, packed like these ('' for a claim that is
--       not traced); left out if none is, and never given without 9
-- Reply {now_ms, version, available, outcome 1, holdings 1, outcome 2, holdings 2, …}
--   available  '' if the round is not here, or not whole
--   outcome    invalid | not_ready | repeated | key_reused | cooling_down | limit_reached | join_the_line |
--              not_started | ended | paused | overloaded | sold_out | admitted: the first that applies, in this order
--   holdings   for a claim that was admitted, what its caller does not know: slot * 2^24 + counter; the order of a claim
--              that was repeated or has its key reused; or the live orders of a buyer at the limit, as the buyers hash
--              or past has them; or the ms when a buyer who is cooling down may buy again; or, for a claim refused as
--              sold out, how much is left of its item
--
-- Lua does not roll back. So everything that can refuse or fail comes before the first write. The reads below raise on
-- a key of the wrong type. The first write is the XADD, the only one that full memory, a failing disk or missing
-- replicas can still refuse. Once it has succeeded, the server lets the script finish, unless our user has just lost
-- the right to the next command: then the entries are taken back.
--
-- Nothing can be decided for a round that is not whole: without the records of its buyers, each could buy once more. So
-- whenever a lost key or field makes the outcome doubtful, it is `not_ready`, until the keeper has rebuilt the round. A
-- buyer's record is only checked when it is read, so a round with a damaged one is fenced here.
--
-- A round may have items, each with its own stock in fields that end in its number. `available` and `admitted` are the
-- sums over all items. A claim for such a round must name an item. If a claim names an item and the round has none, the
-- claim is right, since its caller knows the sale: the round has lost its items.
--
-- A limit may be shared by users who are one person, and by rounds. No separate counts are kept for this: the records
-- of all these users in all these rounds are read, and the live orders in them count. Rounds that share a limit are in
-- one lane, so their keys are in the slot of KEYS[1], and their names follow from it. A round sells only while each
-- sibling that it knows of is whole, and only after that sibling knows of it. So of any two rounds, the later one has
-- told the other before it sold anything.

local COUNTER_MAX = 16777215 -- 24 bits of the order number
local QUANTITY_MAX = 1000
local ORIGIN_S = 1577836800 -- 2020-01-01, the order number's zero
local DAYS_KEPT = 40
local CLOCK_BACK_MS = 2000 -- the script waits for a clock that was set back by less than this
local COOL_DOWN_S_MAX = 3600
local DOUBLINGS_MAX = 12
local NUMBER_END, EPOCH_END = 1e15, 1e6 -- as in round_hash.py
local OPENED = {open = true, line = true, paused = true, closed = true}
local NOTE = 126 -- '~': a record begins with it if some of the buyer's orders are over

local time = redis.call('TIME')
local now_s = tonumber(time[1])
local now_ms = now_s * 1000 + math.floor(tonumber(time[2]) / 1000)
local users, quantities, request_ids = cmsgpack.unpack(ARGV[2]), cmsgpack.unpack(ARGV[3]), cmsgpack.unpack(ARGV[4])
local metadata = ARGV[6] and cmsgpack.unpack(ARGV[6])
local early = ARGV[8] and cmsgpack.unpack(ARGV[8])
local persons = ARGV[9] and cmsgpack.unpack(ARGV[9])
local traces, traced = ARGV[10] and cmsgpack.unpack(ARGV[10]), {} -- of the claims, and of the orders
local claims = #users

local round = redis.call('HMGET', KEYS[1], 'status', 'limit', 'begins_ms', 'ends_ms', 'available', 'admitted',
                         'version', 'epoch', 'id', 'lane', 'buyers', 'past', 'cool_down_s', 'items', 'siblings')
local status, known_buyers = round[1], redis.call('HLEN', KEYS[2])

local limit, begins_ms, ends_ms = tonumber(round[2]), tonumber(round[3]), tonumber(round[4])
local available, admitted, version, epoch = tonumber(round[5]), tonumber(round[6]), tonumber(round[7]), tonumber(round[8])
local id, lane, cool_down_s = tonumber(round[9]), tonumber(round[10]), tonumber(round[13])

local function is_whole()
  if not (limit and begins_ms and ends_ms and available and admitted and version and epoch and id and lane and
          cool_down_s) then return false end
  -- An earlier version did not count the buyers, but every buyer who was ever admitted has a record.
  local buyers, past = round[11] or round[6] ~= '0' and '1' or '0', round[12] or '0'
  -- Lua also takes ` 5`, `0x5`, `5e9`, `inf` and `nan` for numbers, but no gate writes them.
  local all = round[2] .. ',' .. round[3] .. ',' .. round[4] .. ',' .. round[5] .. ',' .. round[6] .. ',' .. round[7] ..
              ',' .. round[8] .. ',' .. round[9] .. ',' .. round[10] .. ',' .. round[13] .. ',' .. buyers .. ',' .. past
  if string.find(all, '[^%d,%-]') then return false end
  if math.max(limit, begins_ms, ends_ms, available, admitted, version, id, lane, cool_down_s) >= NUMBER_END or
     epoch >= EPOCH_END then return false end
  if epoch < tonumber(ARGV[5]) then return false end
  return known_buyers >= (tonumber(buyers) or math.huge) and redis.call('HLEN', KEYS[5]) >= (tonumber(past) or math.huge)
end

-- Computes the date from days since 1970, so that the day is the server's and not a client's.
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

-- Without a counter, numbers begin at 1. It is missing on a new day, or because it was lost; then numbers of the
-- current second may have been given out before. The stream remembers the time of its newest entry, even after that is
-- settled. If that time is in the future, the server's clock was set back, perhaps by days, and waiting would close the
-- lane for as long. Then numbers begin at a place that depends on the microsecond.
local begin_at = 0
local function numbers_are_new()
  if counted then return true end
  local stream = redis.pcall('XINFO', 'STREAM', KEYS[3])
  for i = 1, #stream, 2 do
    if stream[i] == 'last-generated-id' then
      local ahead_ms = tonumber(string.match(stream[i + 1], '^%d+')) - now_s * 1000
      if ahead_ms >= CLOCK_BACK_MS then begin_at = 8 * tonumber(time[2]) end
      return ahead_ms < 0 or ahead_ms >= CLOCK_BACK_MS
    end
  end
  return true
end

local function valid(quantity)
  return quantity == 1 or
         type(quantity) == 'number' and quantity >= 1 and quantity <= QUANTITY_MAX and quantity % 1 == 0
end

local function not_ready()
  local reply = {now_ms, 0, ''}
  for i = 1, claims do
    reply[#reply + 1] = valid(quantities[i]) and 'not_ready' or 'invalid'
    reply[#reply + 1] = ''
  end
  return reply
end

if not OPENED[status or ''] or not is_whole() or not numbers_are_new() then
  return not_ready()
end

-- For a round with items, by their numbers: the units left of each, and the units of it ever admitted.
local items = ARGV[7] and cmsgpack.unpack(ARGV[7])
local stock = round[14] and {}
local function read_stock()
  local numbers, fields, left, sold = {}, {}, 0, 0
  for number in string.gmatch(round[14], '%d+') do
    numbers[#numbers + 1] = number
    fields[#fields + 1] = 'available:' .. number
    fields[#fields + 1] = 'admitted:' .. number
  end
  local counts = #fields > 0 and redis.call('HMGET', KEYS[1], unpack(fields))
  for i, number in ipairs(numbers) do
    local item = {number = number, available = tonumber(counts[2 * i - 1]), admitted = tonumber(counts[2 * i])}
    if not (item.available and item.admitted) then return false end
    left, sold = left + item.available, sold + item.admitted
    stock[tonumber(number)] = item
  end
  return left == available and sold == admitted -- false for `nan` as well
end
if stock and not read_stock() then return not_ready() end

local backlog_max = tonumber(ARGV[1])
-- Orders that share an entry are counted separately. For an empty or missing stream that count means nothing.
local backlog = redis.call('XLEN', KEYS[3])
local queue = redis.call('HMGET', KEYS[6], 'form', 'more')
local more = backlog > 0 and tonumber(string.match(queue[2] or '', '^%d+$') or '0') or 0
backlog = backlog + more
local counter = tonumber(counted or begin_at)
if counted and not string.find(counted, '^%d+$') then return redis.error_reply('WRONGTYPE the counter of today is not a number') end
local first_of_the_day = not counted

local records = redis.call('HMGET', KEYS[2], unpack(users))
local record_of = {} -- user → record, as it will be after this batch; false: none
for i = 1, claims do record_of[users[i]] = records[i] end

-- The text between an order's slot and its request id: a colon, or its item between two colons.
local ORDER = stock and '(%d+:%d+:(%d+):(%d+)(:%d+:)([^: ]*):([01]))' or '(%d+:%d+:(%d+):(%d+)(:)([^: ]*):([01]))'

-- Answers the questions about one buyer: is the request id known, which units and slots are in use, which orders are
-- live, and how long their texts are together, with a blank for each?
local function look_up(record, request_id)
  local units, taken, live, known, length = 0, {}, {}, nil, 0
  for order, quantity, slot, mark, id, alive in string.gmatch(record, ORDER) do
    length = length + #order + 1
    if request_id ~= '' and id == request_id then known = {order, tonumber(quantity), mark} end
    if alive == '1' then
      units = units + tonumber(quantity)
      taken[tonumber(slot)] = true
      live[#live + 1] = order
    end
  end
  return units, taken, live, known, length
end

-- The record is damaged: its buyer may have bought, so nothing can be decided.
local damaged = false

-- Finds an order that is over: its request id is known as long as the round exists. Only called for buyers with such
-- orders.
local function look_back(user, request_id)
  local orders = redis.call('HGET', KEYS[5], request_id .. ' ' .. user)
  local order, quantity, _, mark = string.match(orders or '', '^' .. ORDER)
  damaged = damaged or orders and not order
  return order and {order, tonumber(quantity), mark}
end

-- When a buyer who has let orders lapse may buy again: each lapse has doubled the wait. It does not hold for claims
-- whose request id begins with late- (for money that came late) or line- (for a buyer who has waited in line); no
-- buyer's own request id does.
local function cools_until(record, request_id)
  local lapses, lapsed_ms = string.match(record, '^~%d+:(%d+):(%d+)')
  local by = string.sub(request_id, 1, 5)
  if cool_down_s == 0 or lapses == '0' or by == 'late-' or by == 'line-' then return 0 end
  return lapsed_ms + 1000 * math.min(cool_down_s * 2 ^ math.min(lapses - 1, DOUBLINGS_MAX), COOL_DOWN_S_MAX)
end

local PERSON = '\n' -- a person's field begins with it, and it separates the users in the value
local siblings = round[15] and {}
local function read_siblings()
  local prefix = string.match(KEYS[1], '^(.*):round:%d+$')
  for id in string.gmatch(round[15], '%d+') do
    local sibling = {key = prefix .. ':round:' .. id, buyers = prefix .. ':buyers:' .. id}
    local found = redis.call('HMGET', sibling.key, 'status', 'buyers', 'siblings')
    local known = tonumber(found[2])
    if not OPENED[found[1] or ''] or not known or redis.call('HLEN', sibling.buyers) < known then return false end
    sibling.siblings = found[3] or ''
    siblings[#siblings + 1] = sibling
  end
  return true
end
local is_over = now_ms >= ends_ms or status == 'closed'
-- The siblings of a round that is over may have left the gate. It sells nothing, so they do not matter.
if siblings and not is_over and not read_siblings() then return not_ready() end

local function units_in(record)
  local units = 0
  for order in string.gmatch(record or '', '%S+') do
    local quantity, alive = string.match(order, '^%d+:%d+:(%d+):%d+:.*:([01])$')
    damaged = damaged or not quantity and string.byte(order) ~= NOTE
    if alive == '1' then units = units + quantity end
  end
  return units
end

local users_of = {} -- person → field of the users, as it will be after this batch; false: none
local function users_in(person)
  if users_of[person] == nil then users_of[person] = redis.call('HGET', KEYS[2], PERSON .. person) end
  return users_of[person] or ''
end

-- Live units that count in addition to those of the user in this round.
local function units_beside(user, person)
  local units = 0
  for other in string.gmatch(person and users_in(person) or '', '[^\n]+') do
    if other ~= user then
      if record_of[other] == nil then record_of[other] = redis.call('HGET', KEYS[2], other) end
      damaged = damaged or not record_of[other]
      units = units + units_in(record_of[other])
    end
  end
  for _, sibling in ipairs(siblings or {}) do
    units = units + units_in(redis.call('HGET', sibling.buyers, user))
    local others = person and redis.call('HGET', sibling.buyers, PERSON .. person)
    for other in string.gmatch(others or '', '[^\n]+') do
      if other ~= user then units = units + units_in(redis.call('HGET', sibling.buyers, other)) end
    end
  end
  return units
end

local opens_ms = begins_ms -- of the claim that is being decided
local function refusal(units, quantity, item, request_id)
  if units + quantity > limit then return 'limit_reached' end
  if status == 'line' and now_ms < ends_ms and string.sub(request_id, 1, 5) ~= 'line-' then return 'join_the_line' end
  if now_ms < opens_ms then return 'not_started' end
  if is_over then return 'ended' end
  if status == 'paused' then return 'paused' end
  if backlog >= backlog_max or counter >= COUNTER_MAX then return 'overloaded' end
  if (item and item.available or available) < quantity then return 'sold_out' end
  return nil
end

local reply = {now_ms, version, available}
local function answer(i, outcome, holdings)
  reply[2 * i + 2] = outcome
  reply[2 * i + 3] = holdings
end

-- Decide, on copies of the numbers. Most buyers are new and most claims plain, so no table is made that they do not
-- need. Strings are joined by `..`, which is one step for a whole chain. But `..` formats numbers as decimal fractions,
-- which takes longer than the rest of the chain: hence the texts.
local seconds = string.format('%d', now_s - ORIGIN_S)
local head = '{"v":1,"round":' .. round[9] .. ',"epoch":' .. round[8] .. ',"lane":' .. round[10] .. ',"seconds":' ..
             seconds .. ',"at_ms":' .. string.format('%.0f', now_ms) .. ',"counter":'
local first = counter + 1
local orders, slots = {}, {} -- for each admitted order: its claim's place in the batch, and its slot
local changed = {} -- user, record, …; if a buyer is in it twice, the last one counts
for i = 1, claims do
  local user, quantity, request_id = users[i], quantities[i], request_ids[i]
  local item = stock and items and stock[items[i]]
  if not valid(quantity) or stock and not item then
    answer(i, 'invalid', '')
  elseif items and items[i] ~= 0 and not item then
    answer(i, 'not_ready', '')
  else
    local record, units, slot, again_ms, live, known = record_of[user], 0, 1, 0, nil, nil
    if early then opens_ms = begins_ms - early[i] end
    local mark = item and ':' .. item.number .. ':' or ':'
    if record then
      local taken, length
      units, taken, live, known, length = look_up(record, request_id)
      while taken[slot] do slot = slot + 1 end
      if string.byte(record) == NOTE then
        length = length + #(string.match(record, '^~%d+:%d+:%d+') or '')
        damaged = damaged or length ~= #record
        if not known and not damaged then
          known = request_id ~= '' and look_back(user, request_id)
          again_ms = cools_until(record, request_id)
        end
      else
        damaged = damaged or length ~= #record + 1
      end
    end
    local person = persons and persons[i] ~= '' and persons[i] or nil
    if (person or siblings) and not known and not is_over then units = units + units_beside(user, person) end
    local refused = not known and (now_ms < again_ms and 'cooling_down' or refusal(units, quantity, item, request_id))
    if known then
      answer(i, known[2] == quantity and known[3] == mark and 'repeated' or 'key_reused', known[1])
    elseif refused == 'cooling_down' then
      answer(i, refused, string.format('%.0f', again_ms))
    elseif item and refused == 'sold_out' then
      answer(i, refused, string.format('%d', item.available))
    elseif refused then
      answer(i, refused, live and refused == 'limit_reached' and table.concat(live, ' ') or '')
    else
      counter, backlog = counter + 1, backlog + 1
      available, admitted = available - quantity, admitted + quantity
      if item then item.available, item.admitted = item.available - quantity, item.admitted + quantity end
      local number = string.format('%d', counter)
      local units_text, slot_text = quantity == 1 and '1' or quantity, slot == 1 and '1' or slot
      local order = seconds .. ':' .. number .. ':' .. units_text .. ':' .. slot_text .. mark .. request_id .. ':1'
      if not record then known_buyers = known_buyers + 1 end
      record = record and record .. ' ' .. order or order
      record_of[user] = record
      changed[#changed + 1] = user
      changed[#changed + 1] = record
      orders[#orders + 1] = i
      slots[#orders] = slot
      if person then
        local there = users_in(person)
        if not string.find(PERSON .. there .. PERSON, PERSON .. user .. PERSON, 1, true) then
          if there == '' then known_buyers = known_buyers + 1 end
          users_of[person] = there == '' and user or there .. PERSON .. user
          changed[#changed + 1] = PERSON .. person
          changed[#changed + 1] = users_of[person]
        end
      end
      if traces and traces[i] ~= '' then traced[#orders] = traces[i] end
      answer(i, 'admitted', slot * (COUNTER_MAX + 1) + counter)
    end
  end
end

if damaged then
  redis.call('HSET', KEYS[1], 'status', 'preparing', 'opened_ms', 0) -- only a rebuild opens it again
  return not_ready()
end

-- An entry for each order, as every version reads it.
local function entry(nth)
  local i = orders[nth]
  local text = head .. string.format('%d', first + nth - 1) .. ',"quantity":' ..
               (quantities[i] == 1 and '1' or quantities[i]) .. ',"slot":' .. (slots[nth] == 1 and '1' or slots[nth]) ..
               ',"user":' .. cjson.encode(users[i]) .. ',"request":' ..
               (request_ids[i] == '' and '""' or cjson.encode(request_ids[i]))
  if metadata and metadata[i] ~= '' then text = text .. ',"metadata":' .. cjson.encode(metadata[i]) end
  if stock then text = text .. ',"item":' .. stock[items[i]].number end
  if persons and persons[i] ~= '' then text = text .. ',"person":' .. cjson.encode(persons[i]) end
  return text .. '}'
end

-- Picks the given values of the admitted claims; nothing if none of them has one.
local function of_orders(said, none)
  if not said then return {} end
  local found, any = {}, false
  for nth = 1, #orders do
    found[nth] = said[orders[nth]]
    any = any or found[nth] ~= none
  end
  return any and found or {}
end

-- One entry for all orders. It takes the server half the time to store, deliver and delete.
local function entry_of_all()
  return cmsgpack.pack({2, id, epoch, lane, now_s - ORIGIN_S, now_ms, first, of_orders(users), of_orders(quantities), slots,
                        of_orders(request_ids, ''), of_orders(metadata, ''), stock and of_orders(items, 0) or {},
                        of_orders(persons, '')})
end

local entries = {}
if queue[1] == '2' and #orders > 1 and not next(traced) then -- traced orders are rare and travel alone
  entries[1] = entry_of_all()
  more = more + #orders - 1
else
  for nth = 1, #orders do entries[nth] = entry(nth) end
end

-- Write.
if #orders > 0 then
  for _, sibling in ipairs(siblings or {}) do
    if not string.find(' ' .. sibling.siblings .. ' ', ' ' .. round[9] .. ' ', 1, true) then
      -- Harmless if it is refused, or if it is the only write: then one record more is counted than there is.
      redis.call('HSET', sibling.key, 'siblings', (string.gsub(sibling.siblings .. ' ' .. round[9], '^ ', '')))
    end
  end
  if persons then redis.call('HSET', KEYS[1], 'has_persons', 1) end
  local added = {}
  for i = 1, #entries do
    if traced[i] then
      -- earlier versions only read the first field
      added[i] = redis.call('XADD', KEYS[3], '*', 'order', entries[i], 'trace', traced[i])
    else
      added[i] = redis.call('XADD', KEYS[3], '*', #entries == #orders and 'order' or 'orders', entries[i])
    end
  end
  -- A user's rights to a command may be taken away at any moment, and asking for them first takes longer than this.
  local noted = redis.pcall('HSET', KEYS[2], unpack(changed))
  if type(noted) == 'table' then
    redis.call('XDEL', KEYS[3], unpack(added))
    return noted
  end
  if more ~= tonumber(queue[2] or '0') then redis.call('HSET', KEYS[6], 'more', more) end
  redis.call('HSET', KEYS[1], 'available', available, 'admitted', admitted, 'buyers', known_buyers)
  if available == 0 then redis.call('HSET', KEYS[1], 'sold_out_ms', string.format('%.0f', now_ms)) end
  if stock then
    local counts = {}
    for _, item in pairs(stock) do
      counts[#counts + 1] = 'available:' .. item.number
      counts[#counts + 1] = item.available
      counts[#counts + 1] = 'admitted:' .. item.number
      counts[#counts + 1] = item.admitted
    end
    redis.call('HSET', KEYS[1], unpack(counts))
  end
  redis.call('HSET', KEYS[4], today, counter)
  if first_of_the_day then
    local oldest = day_of(now_s - DAYS_KEPT * 86400)
    for _, day in ipairs(redis.call('HKEYS', KEYS[4])) do
      if day < oldest then redis.pcall('HDEL', KEYS[4], day) end
    end
  end
end

reply[3] = available
return reply
