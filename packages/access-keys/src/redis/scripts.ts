import { PRESENT_RUN_LUA } from '@playline/errors';

/** The present run of Redis. */
export const PRESENT_RUN = `${PRESENT_RUN_LUA}
local run = present_run()
`;

/** More changes than a gateway can miss between two looks. A process that was away for longer reads the whole list. */
const CHANGES_KEPT = 1000;

/** Applies one change to the list of live keys and appends it to the last changes. */
const LIST = `
local function list(keys, hash, live)
  redis.call(live and 'SADD' or 'SREM', keys.live, hash)
  redis.call('RPUSH', keys.changes, (live and '+' or '-') .. hash)
  redis.call('LTRIM', keys.changes, -${CHANGES_KEPT}, -1)
  redis.call('INCR', keys.version)
end
`;

/**
 * A view without a list comes from a release that had none. It counts as complete in another run, so the log is applied
 * again and creates the list. KEYS: mark of completeness, name of the list. Replies the present run, and the one of the
 * mark or nil.
 */
export const STANDING = `${PRESENT_RUN}
local complete = redis.call('GET', KEYS[1])
local named = redis.call('GET', KEYS[2])
if complete == run and (not named or string.sub(named, 1, #run) ~= run) then complete = 'without a list' end
return {run, complete}`;

/**
 * KEYS: mark of completeness, name of the list. ARGV: the run of which it is to be, a name that no list has had.
 * Replies 0 when that run is over. The list may have entries without a recorded change, so it gets a new name, and
 * every process reads it again.
 */
export const COMPLETE = `${PRESENT_RUN}
if run ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], run)
redis.call('SET', KEYS[2], run .. ':' .. ARGV[2])
return 1`;

/**
 * KEYS: name of the list, version, last changes, mark of completeness. ARGV: name and version that the caller has.
 * Replies nothing when list or records are incomplete in this run; else the name, the version and the changes, or false
 * when the whole list must be read.
 */
export const CHANGES = `${PRESENT_RUN}
local named = redis.call('GET', KEYS[1])
if not named or string.sub(named, 1, #run) ~= run or redis.call('GET', KEYS[4]) ~= run then return {} end
local version = tonumber(redis.call('GET', KEYS[2]) or '0')
local missed = version - tonumber(ARGV[2])
if named ~= ARGV[1] or missed < 0 or missed > redis.call('LLEN', KEYS[3]) then return {named, version, false} end
if missed == 0 then return {named, version, {}} end
return {named, version, redis.call('LRANGE', KEYS[3], -missed, -1)}`;

/**
 * Looks up a record. In an incomplete view it counts only if the key has ended, because that is final. KEYS: record,
 * mark of completeness. Replies the record or nil, and 1 when that is the answer.
 */
export const FIND = `${PRESENT_RUN}
local record = redis.call('GET', KEYS[1])
local complete = redis.call('GET', KEYS[2]) == run
local ended = record and cjson.decode(record).revokedAt ~= cjson.null
return {record, (complete or ended) and 1 or 0}`;

/**
 * KEYS: live keys of the environment, keys of the project, ended record, added record, mark of completeness; live keys,
 * last changes, version, name of the list.
 * ARGV: kind, hash of the ended key or '', ended record, hash of the added key or '', added record, a name that no list
 * has had.
 */
export const REPLACE = `${PRESENT_RUN}${LIST}
local keys = {live = KEYS[6], changes = KEYS[7], version = KEYS[8]}
local live = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if live ~= ARGV[2] then return 0 end
if redis.call('SETNX', KEYS[5], run) == 1 then redis.call('SET', KEYS[9], run .. ':' .. ARGV[6]) end
if ARGV[2] ~= '' then
  redis.call('SET', KEYS[3], ARGV[3])
  list(keys, ARGV[2], false)
end
if ARGV[4] == '' then redis.call('HDEL', KEYS[1], ARGV[1]) return 1 end
redis.call('SET', KEYS[4], ARGV[5])
list(keys, ARGV[4], true)
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4])
redis.call('RPUSH', KEYS[2], ARGV[4])
return 1`;

/**
 * The set of live keys does not change, so the list stays. KEYS: live keys of the environment, record. ARGV: kind,
 * hash, record.
 */
export const AMEND = `
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[2], ARGV[3])
return 1`;

/**
 * Applies a record of the log. An ended key never becomes live again. KEYS: live keys of the environment, keys of the
 * project, record, live keys. ARGV: kind, hash, record, '1' when it has ended.
 */
export const RESTORE = `
local ended = ARGV[4] == '1'
local standing = redis.call('GET', KEYS[3])
if standing and not ended and cjson.decode(standing).revokedAt ~= cjson.null then return 0 end
redis.call('SET', KEYS[3], ARGV[3])
redis.call(ended and 'SREM' or 'SADD', KEYS[4], ARGV[2])
if not redis.call('LPOS', KEYS[2], ARGV[2]) then redis.call('RPUSH', KEYS[2], ARGV[2]) end
local live = redis.call('HGET', KEYS[1], ARGV[1])
if ended and live == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
if not ended and not live then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return 1`;

/** Removes a record. KEYS as RESTORE. ARGV: kind, hash. */
export const REMOVE = `
redis.call('DEL', KEYS[3])
redis.call('SREM', KEYS[4], ARGV[2])
redis.call('LREM', KEYS[2], 0, ARGV[2])
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1`;

/** KEYS: the turn. ARGV: the expected owner, its duration from now on in ms; 0 ends it. */
export const KEEP_TURN = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;
