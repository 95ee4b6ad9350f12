-- KEYS: one bucket each. ARGV: the charge per bucket, in microseconds; 0 only reads.
--
-- A bucket is stored as the microsecond at which it is full. All processes use the clock of Redis. A full bucket has
-- no key, so inactive callers take no memory.
--
-- The value is `<full_at>.<backlog>`, in microseconds. The backlog is the time until full as of the write, so
-- full_at - backlog is the time of the write. If the clock of Redis was set back since, the stored backlog is the
-- maximum that applies: no caller waits until the clock has caught up.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local backlogs = {}
for i, key in ipairs(KEYS) do
  local stored, backlog_before = string.match(redis.call('GET', key) or '0.0', '^(%d+)%.(%d+)$')
  local full_before = math.min(tonumber(stored), now + tonumber(backlog_before))
  local full_at = math.max(full_before, now) + tonumber(ARGV[i])
  local backlog = full_at - now
  -- Not tostring, which rounds to 14 digits: an error of a hundred microseconds.
  if ARGV[i] ~= '0' then
    redis.call('SET', key, string.format('%.0f.%.0f', full_at, math.max(0, backlog)), 'PX', math.max(1, math.ceil(backlog / 1000)))
  end
  backlogs[i] = backlog
end
return backlogs
