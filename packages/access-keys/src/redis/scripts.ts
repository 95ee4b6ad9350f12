/**
 * KEYS: live keys of the environment, keys of the project, ended record, added record, mark of completeness.
 * ARGV: kind, hash of the ended key or '', ended record, hash of the added key or '', added record.
 */
export const REPLACE = `
local live = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if live ~= ARGV[2] then return 0 end
redis.call('SETNX', KEYS[5], '1')
if ARGV[2] ~= '' then redis.call('SET', KEYS[3], ARGV[3]) end
if ARGV[4] == '' then redis.call('HDEL', KEYS[1], ARGV[1]) return 1 end
redis.call('SET', KEYS[4], ARGV[5])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4])
redis.call('RPUSH', KEYS[2], ARGV[4])
return 1`;

/**
 * Brings one record of the log in; an ended one never comes back to life.
 * KEYS: live keys of the environment, keys of the project, record. ARGV: kind, hash, record, '1' when it has ended.
 */
export const RESTORE = `
local ended = ARGV[4] == '1'
local standing = redis.call('GET', KEYS[3])
if standing and not ended and cjson.decode(standing).revokedAt ~= cjson.null then return 0 end
redis.call('SET', KEYS[3], ARGV[3])
if not redis.call('LPOS', KEYS[2], ARGV[2]) then redis.call('RPUSH', KEYS[2], ARGV[2]) end
local live = redis.call('HGET', KEYS[1], ARGV[1])
if ended and live == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
if not ended and not live then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return 1`;

/** Takes one record out. KEYS as RESTORE. ARGV: kind, hash. */
export const REMOVE = `
redis.call('DEL', KEYS[3])
redis.call('LREM', KEYS[2], 0, ARGV[2])
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1`;

/** KEYS: the turn. ARGV: whose it must be, how long it lasts from now on in ms; 0 gives it back. */
export const KEEP_TURN = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;
