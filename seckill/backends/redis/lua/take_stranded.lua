-- Takes entries that no consumer will ever get: the group's position is behind them, and they are pending for no one.
-- They are not settled, since settled entries are deleted from the stream. This happens when a group was set to the end
-- of the stream, or made again there.
--
-- The oldest entry shows whether there are any. Stranded entries behind pending ones are found when those are settled.
--
-- KEYS  1 orders of the lane (stream)
-- ARGV  1 group   2 consumer   3 how many at most; 0: only tell whether there are any
-- Reply the entries, as XCLAIM returns them; with 0, the oldest one, without taking it

local function is_behind(entry_id, last)
  local ms, n = string.match(entry_id, '(%d+)-(%d+)')
  local last_ms, last_n = string.match(last, '(%d+)-(%d+)')
  ms, n, last_ms, last_n = tonumber(ms), tonumber(n), tonumber(last_ms), tonumber(last_n)
  return ms < last_ms or ms == last_ms and n <= last_n
end

local function is_in_hand(entry_id)
  return #redis.call('XPENDING', KEYS[1], ARGV[1], entry_id, entry_id, 1) > 0
end

local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
if not oldest then return {} end
local last
for _, facts in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local group = {}
  for i = 1, #facts, 2 do group[facts[i]] = facts[i + 1] end
  if group.name == ARGV[1] then last = group['last-delivered-id'] end
end
if not last or not is_behind(oldest[1], last) or is_in_hand(oldest[1]) then return {} end
if ARGV[3] == '0' then return {oldest} end

local taken = {}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', last, 'COUNT', ARGV[3])) do
  if not is_in_hand(entry[1]) then
    taken[#taken + 1] = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, entry[1], 'FORCE')[1]
  end
end
return taken
