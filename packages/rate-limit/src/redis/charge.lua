-- KEYS: one bucket each. ARGV: its charge in microseconds, 0 to ask only.
-- A bucket is the microsecond at which it is full, by the one clock that all processes share: that of Redis.
-- Full buckets are absent, so nothing stays behind for callers that have gone.
-- Behind its point stand the microseconds that it lacked when it was written, which tell when that was: a clock that
-- was set back meanwhile must not make callers wait as long. Read as a number the value is the moment as it always was.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local backlogs = {}
for i, key in ipairs(KEYS) do
  local stored, lacked = string.match(redis.call('GET', key) or '0', '^(%d+)%.?(%d*)$')
  local standing = tonumber(stored)
  if lacked ~= '' then standing = math.min(standing, now + tonumber(lacked)) end
  local full_at = math.max(standing, now) + tonumber(ARGV[i])
  local backlog = full_at - now
  -- Not tostring: it would round to 14 digits, which is a hundred microseconds.
  if ARGV[i] ~= '0' then
    redis.call('SET', key, string.format('%.0f.%.0f', full_at, math.max(0, backlog)), 'PX', math.max(1, math.ceil(backlog / 1000)))
  end
  backlogs[i] = backlog
end
return backlogs
