/**
 * The present run of Redis: its process, and since when it is the primary. A start gives it another process id of its
 * own making (run_id), a replica that is promoted another replication id; both may have lost what was written last.
 */
const PRESENT_RUN = `
local info = redis.call('INFO', 'server', 'replication')
local run = string.match(info, 'run_id:(%x+)') .. ':' .. string.match(info, 'master_replid:(%x+)')
`;

/** KEYS: mark of completeness. Replies the present run, and the one of the mark or nil. */
export const STANDING = `${PRESENT_RUN}
return {run, redis.call('GET', KEYS[1])}`;

/** KEYS: mark of completeness. ARGV: the run of which it is to be. Replies 0 when that run is over. */
export const COMPLETE = `${PRESENT_RUN}
if run ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], run)
return 1`;

/**
 * Looks one record up. What an incomplete view holds counts only when the key has ended, which is for ever.
 * KEYS: record, mark of completeness. Replies the record or nil, and 1 when that is the answer.
 */
export const FIND = `${PRESENT_RUN}
local record = redis.call('GET', KEYS[1])
local complete = redis.call('GET', KEYS[2]) == run
local ended = record and cjson.decode(record).revokedAt ~= cjson.null
return {record, (complete or ended) and 1 or 0}`;

/**
 * KEYS: live keys of the environment, keys of the project, ended record, added record, mark of completeness.
 * ARGV: kind, hash of the ended key or '', ended record, hash of the added key or '', added record.
 */
export const REPLACE = `${PRESENT_RUN}
local live = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if live ~= ARGV[2] then return 0 end
redis.call('SETNX', KEYS[5], run)
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
