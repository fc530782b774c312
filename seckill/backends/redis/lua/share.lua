-- The common beginning of `give.lua` and `take.lua`: reads the share of a lane, or of one of its items, and changes it.
--
-- KEYS  are named by the script that follows
-- Reply none: the script that follows replies

-- Returns nil if the round is not here in this epoch, is not open, or has lost count of what it has sent and got: then
-- units would be sent or received twice. `item` is left out where there are none.
local function share_of(key, epoch, item)
  local round, moved, of_item = {}, 0, 0
  local tail = item and ':' .. item or ''
  local fields = redis.call('HGETALL', key)
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    round[name] = value
    local way, which = string.match(name, '^(%l+):%d+(.*)$')
    if way == 'sent' or way == 'got' then
      local units = (tonumber(value) or 0) * (way == 'sent' and -1 or 1)
      moved = moved + units
      if which == tail then of_item = of_item + units end
    end
  end
  if round.epoch ~= epoch or round.status == 'preparing' then return nil end
  local total, available = tonumber(round.total), tonumber(round.available)
  local held, left = tonumber(round['total' .. tail]), tonumber(round['available' .. tail])
  if not available or not left then return nil end
  if total ~= (tonumber(round.dealt) or 0) + moved then return nil end
  if held ~= (tonumber(round['dealt' .. tail]) or 0) + of_item then return nil end
  return {key = key, round = round, tail = tail, total = total, available = available, held = held, left = left}
end

-- `name`: the field that counts the units ever sent to a lane, or got from it.
local function count_of(share, name)
  return tonumber(share.round[name .. share.tail] or '0')
end

local function change(share, units, name, count)
  local tail = share.tail
  redis.call('HSET', share.key, name .. tail, count, 'total', share.total + units, 'available', share.available + units)
  if tail ~= '' then
    redis.call('HSET', share.key, 'total' .. tail, share.held + units, 'available' .. tail, share.left + units)
  end
end
