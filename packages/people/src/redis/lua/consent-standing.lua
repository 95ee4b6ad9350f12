-- KEYS  standing to the log
-- Reply the present run, then the fields and values of the standing
return {present_run(), redis.call('HGETALL', KEYS[1])}
