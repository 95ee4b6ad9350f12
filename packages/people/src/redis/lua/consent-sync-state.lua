-- KEYS  state of the sync with the log
-- Reply the current run, then the fields and values of the hash
return {present_run(), redis.call('HGETALL', KEYS[1])}
