-- For wrk: one claim a line of the file LINES ("path token"), each sent once, in order, unless CYCLE is set.
-- Lines are read when it is their turn: LuaJIT finds a string by a few of its bytes, requests differ where it does not
-- look, and a hundred thousand of them kept in a table took minutes.
-- KEYS none: this runs in the load generator.
-- Reply none
local file = io.open(os.getenv("LINES"))
local cycle = os.getenv("CYCLE") ~= nil
local last

local function next_line()
  local line = file:read("*l")
  if line == nil and cycle then
    file:seek("set")
    line = file:read("*l")
  end
  return line
end

function request()
  local line = next_line()
  if line == nil then
    wrk.thread:stop()
    return last
  end
  local path, token = line:match("(%S+) (%S+)")
  last = "POST " .. path .. " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " .. token
    .. "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
  return last
end
