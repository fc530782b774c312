-- For wrk: one claim a line of the file LINES ("path token"), each sent once, in order, unless CYCLE is set.
-- KEYS none: this runs in the load generator.
-- Reply none
local lines = {}
for path, token in io.open(os.getenv("LINES")):read("*a"):gmatch("(%S+) (%S+)") do
  lines[#lines + 1] = "POST " .. path .. " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " .. token
    .. "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
end
local cycle = os.getenv("CYCLE") ~= nil
local sent = 0
function request()
  sent = sent + 1
  if sent > #lines then
    if cycle then
      sent = 1
    else
      wrk.thread:stop()
      sent = #lines
    end
  end
  return lines[sent]
end
