-- KEYS  run in which all fences were set, epoch
-- Reply the current run, 1 if all fences were set in this run, else 0, and 1 if there is an epoch, else 0
local run = present_run()
return { run, redis.call('GET', KEYS[1]) == run and 1 or 0, redis.call('EXISTS', KEYS[2]) }
