/**
 * What follows from a session's times is decided by the process, which has the rule; the scripts keep a record and the list
 * of its account in step. KEYS: session, list of its account.
 */

/**
 * ARGV: what stands before the id in the name of a session, id, record, seenAt, signedInAt, milliseconds until it ends.
 * The list lasts as long as the session that ends last; what has ended by itself leaves it here.
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

/** ARGV: name of a time, the time, milliseconds until the session ends. One that was ended meanwhile stays so. */
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

/** KEYS: list of the account. ARGV: what stands before the id in the name of a session, id of the one that stays or ''. */
export const END_SESSIONS = `
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  if id ~= ARGV[2] then
    redis.call('DEL', ARGV[1] .. id)
    redis.call('SREM', KEYS[1], id)
  end
end
return 1`;

/**
 * Of one-time texts, `endsAt value` each. What has ended by the clock of the process is not there, whenever Redis removes it.
 * KEYS: text. ARGV: now.
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

/** ARGV: now, end, milliseconds until then. Replies 1 to whoever is first. */
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
