-- Records that all fences are set and enforced.
-- KEYS  run in which all fences were set
-- ARGV  run
-- Reply 1, or 0 without a change if the run has ended
if present_run() ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
