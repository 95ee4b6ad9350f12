-- KEYS: buckets. ARGV: charge per bucket, in microseconds; 0 only reads the bucket.
--
-- A bucket is stored as the time at which it will be full, by Redis's clock. Full buckets have no key, so
-- inactive callers use no memory.
--
-- The value is `<full_at>.<backlog>`, in microseconds. The backlog is the time from the write until the bucket is
-- full, and limits the wait if Redis's clock is set back: without the limit, callers would have to wait until the
-- clock has caught up.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local backlogs = {}
for i, key in ipairs(KEYS) do
  local stored, backlog_before = string.match(redis.call('GET', key) or '0.0', '^(%d+)%.(%d+)$')
  local full_before = math.min(tonumber(stored), now + tonumber(backlog_before))
  local full_at = math.max(full_before, now) + tonumber(ARGV[i])
  local backlog = full_at - now
  -- tostring would round to 14 digits, an error of up to 100 microseconds.
  if ARGV[i] ~= '0' then
    redis.call('SET', key, string.format('%.0f.%.0f', full_at, math.max(0, backlog)), 'PX', math.max(1, math.ceil(backlog / 1000)))
  end
  backlogs[i] = backlog
end
return backlogs
