/**
 * Scripts that keep a session and the list of its account consistent. The rules about times are in the process. KEYS:
 * session, list of its account.
 */

/**
 * ARGV: prefix of the names of sessions, id, record, seenAt, signedInAt, milliseconds until it ends. The list lives as
 * long as its last session. Expired sessions are removed from it here.
 */
export const CREATE_SESSION = `
for _, id in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  if redis.call('EXISTS', ARGV[1] .. id) == 0 then redis.call('SREM', KEYS[2], id) end
end
redis.call('HSET', KEYS[1], 'record', ARGV[3], 'seenAt', ARGV[4], 'signedInAt', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('SADD', KEYS[2], ARGV[2])
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[6]) then redis.call('PEXPIRE', KEYS[2], ARGV[6]) end
return 1`;

/**
 * ARGV: name of a time, the time, milliseconds until the session ends. Does nothing to a session that has ended
 * meanwhile.
 */
export const CHANGE_SESSION = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
return 1`;

/** ARGV: id. */
export const END_SESSION = `
redis.call('SREM', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])`;

/** KEYS: list of the account. ARGV: prefix of the names of sessions, id of the session that stays, or ''. */
export const END_SESSIONS = `
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  if id ~= ARGV[2] then
    redis.call('DEL', ARGV[1] .. id)
    redis.call('SREM', KEYS[1], id)
  end
end
return 1`;

/**
 * Reads a one-time text, stored as `endsAt value`. It counts as missing after its end by the process's clock, even if
 * Redis still has it. KEYS: text. ARGV: now.
 */
const STANDING_TEXT = `
local function standing(now)
  local text = redis.call('GET', KEYS[1])
  if not text then return nil end
  local ends, value = string.match(text, '^(%d+) (.*)$')
  if tonumber(ends) <= tonumber(now) then return nil end
  return value, ends
end
`;

export const LOOK_TEXT = `${STANDING_TEXT}
return (standing(ARGV[1]))`;

export const TAKE_TEXT = `${STANDING_TEXT}
local value = standing(ARGV[1])
redis.call('DEL', KEYS[1])
return value`;

/** ARGV: now, end, milliseconds until then. Replies 1 to the first caller. */
export const SPEND_TEXT = `${STANDING_TEXT}
if standing(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2] .. ' ', 'PX', ARGV[3])
return 1`;

/** ARGV: now, end of a window that begins now, its milliseconds. Replies the count. */
export const COUNT_ATTEMPT = `${STANDING_TEXT}
local count, ends = standing(ARGV[1])
if not count then
  redis.call('SET', KEYS[1], ARGV[2] .. ' 1', 'PX', ARGV[3])
  return 1
end
redis.call('SET', KEYS[1], ends .. ' ' .. (tonumber(count) + 1), 'KEEPTTL')
return tonumber(count) + 1`;
