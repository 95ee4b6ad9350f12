-- KEYS  consent log
-- ARGV  run, then alternating partitions and last offsets
-- Reply 1, or 0 without a change if the run has ended
local run = present_run()
if run ~= ARGV[1] then return 0 end
for at = 2, #ARGV, 2 do
  local applied = tonumber(redis.call('HGET', KEYS[1], ARGV[at]) or -1)
  if tonumber(ARGV[at + 1]) > applied then redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
end
redis.call('HSET', KEYS[1], 'run', run)
return 1
