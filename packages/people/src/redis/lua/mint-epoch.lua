-- Sets an epoch if there is none. Everything else was loaded before, fences first.
-- KEYS  epoch, run with all fences
-- ARGV  the new epoch, the run in which loading began; '' when nothing was loaded
-- Reply the current epoch
local known = redis.call('GET', KEYS[1])
if known then return known end
local run = present_run()
if ARGV[2] ~= '' and ARGV[2] ~= run then return redis.error_reply('RESTARTED since loading began') end
redis.call('SET', KEYS[2], run)
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
