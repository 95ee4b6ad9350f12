-- KEYS: one bucket each. ARGV: what to charge it, in microseconds; 0 only reads.
--
-- A bucket is stored as the microsecond at which it is full. All processes share one clock: that of Redis. A full
-- bucket has no key, so callers that have gone leave nothing behind.
--
-- The value is `<moment>.<lack>`. The lack is how many microseconds were missing when it was written, so moment - lack
-- is the time of writing. If the clock of Redis was set back since, the bucket is taken to lack as much as it did then,
-- and no more: no caller waits for as long as the clock was set back.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local backlogs = {}
for i, key in ipairs(KEYS) do
  local stored, lacked = string.match(redis.call('GET', key) or '0.0', '^(%d+)%.(%d+)$')
  local full_before = math.min(tonumber(stored), now + tonumber(lacked))
  local full_at = math.max(full_before, now) + tonumber(ARGV[i])
  local backlog = full_at - now
  -- Not tostring: it rounds to 14 digits, an error of a hundred microseconds.
  if ARGV[i] ~= '0' then
    redis.call('SET', key, string.format('%.0f.%.0f', full_at, math.max(0, backlog)), 'PX', math.max(1, math.ceil(backlog / 1000)))
  end
  backlogs[i] = backlog
end
return backlogs
