-- KEYS  run with all fences
-- Reply the current run, and 1 when all fences are set in it
local run = present_run()
return { run, redis.call('GET', KEYS[1]) == run and 1 or 0 }
