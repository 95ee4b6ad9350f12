-- Sets an epoch if there is none. All other data must be loaded first, starting with the fences.
-- KEYS  epoch, run in which all fences were set
-- ARGV  new epoch, run in which loading started ('' if nothing was loaded)
-- Reply the current epoch
local known = redis.call('GET', KEYS[1])
if known then return known end
local run = present_run()
if ARGV[2] ~= '' and ARGV[2] ~= run then return redis.error_reply('RESTARTED since loading began') end
redis.call('SET', KEYS[2], run)
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
