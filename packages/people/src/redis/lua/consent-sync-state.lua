-- KEYS  consent log
-- Reply the current run, then the hash fields and values
return {present_run(), redis.call('HGETALL', KEYS[1])}
