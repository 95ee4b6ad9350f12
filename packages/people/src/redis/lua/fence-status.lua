-- KEYS  run in which all fences were set
-- Reply the current run, and 1 if all fences were set in this run, else 0
local run = present_run()
return { run, redis.call('GET', KEYS[1]) == run and 1 or 0 }
