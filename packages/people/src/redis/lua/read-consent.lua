-- Atomically reads a consent and checks that the store is complete and current.
-- KEYS  epoch, consent bucket, consent log, run in which all fences were set
-- ARGV  identity key
-- Reply the value, or nil
if redis.call('EXISTS', KEYS[1]) == 0 then return redis.error_reply(NO_EPOCH) end
local run = present_run()
if redis.call('GET', KEYS[4]) ~= run then return redis.error_reply(NO_FENCES) end
if redis.call('HGET', KEYS[3], 'run') ~= run then return redis.error_reply('LAGGING Redis started a new run') end
return redis.call('HGET', KEYS[2], ARGV[1])
