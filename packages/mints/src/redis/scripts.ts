import { PRESENT_RUN_LUA } from '@playline/errors';

/** The present run of Redis: when it changes, the last writes may have been lost. */
const PRESENT_RUN = `${PRESENT_RUN_LUA}
local run = present_run()
`;

/**
 * Format of a claim: attempt, status, revision, time of the request, signer, digest, time of the claim; '-' for none.
 */
const LINE = `
local function parse(line)
  if not line then return nil end
  local attempt, status, revision, requested, signer, digest, claimed =
    string.match(line, '^(%x+) (%a+) (%d+) (%d+) (%S+) (%S+) (%S+)$')
  return {
    attempt = attempt, status = status, revision = tonumber(revision), requested = tonumber(requested),
    signer = signer, digest = digest, claimed = claimed
  }
end
`;

/** Milliseconds by the clock of Redis, which all processes share. `tostring` would round to 14 digits. */
const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function whole(number) return string.format('%.0f', number) end
`;

/**
 * KEYS: mark of completeness, then one claim each. ARGV: '1' to only check, expiry of an unconfirmed claim in
 * milliseconds, then attempt, signer and digest of each.
 */
export const CLAIM = `${PRESENT_RUN}${LINE}${NOW}
if redis.call('GET', KEYS[1]) ~= run then return {'incomplete'} end
local taken, unknown, claimed = {'taken'}, {'unknown'}, {'claimed'}
local lines = {}
for i = 2, #KEYS do
  local standing = parse(redis.call('GET', KEYS[i]))
  local at = 3 * (i - 1)
  local attempt, signer, digest = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local requested = now
  if standing and standing.claimed ~= '-' then
    if standing.digest == digest then
      attempt, signer, requested = standing.attempt, standing.signer, standing.requested
    else
      for _, part in ipairs({i - 2, standing.attempt, standing.signer, standing.claimed, now - tonumber(standing.claimed)}) do
        unknown[#unknown + 1] = part
      end
    end
  elseif standing then
    if standing.status == 'failed' then requested = math.max(now, standing.requested + 1)
    else taken[#taken + 1] = i - 2 end
  end
  for _, part in ipairs({attempt, signer, whole(requested)}) do claimed[#claimed + 1] = part end
  lines[i] = attempt .. ' pending 0 ' .. whole(requested) .. ' ' .. signer .. ' ' .. digest .. ' ' .. whole(now)
end
if #taken > 1 then return taken end
if #unknown > 1 then return unknown end
if ARGV[1] ~= '1' then
  for i = 2, #KEYS do redis.call('SET', KEYS[i], lines[i], 'PX', ARGV[2]) end
end
return claimed`;

/**
 * KEYS: claim and state of each. ARGV: attempt, signer, time of the request and state of each. Replies the indexes of
 * the claims that have another attempt.
 */
export const CONFIRM = `${LINE}
local others = {}
for i = 1, #KEYS / 2 do
  local key, at = KEYS[2 * i - 1], 4 * i - 3
  local attempt, signer, requested, state = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local standing = parse(redis.call('GET', key))
  if standing and standing.attempt ~= attempt then others[#others + 1] = i - 1
  elseif not standing or standing.claimed ~= '-' then
    redis.call('SET', key, attempt .. ' pending 0 ' .. requested .. ' ' .. signer .. ' - -')
    redis.call('SET', KEYS[2 * i], state)
  end
end
return others`;

/**
 * KEYS: a claim. ARGV: its attempt and the time of the claim, as they were found, and for how many milliseconds its
 * failure is kept: the next attempt needs a later time.
 */
export const LAPSE = `${LINE}
local standing = parse(redis.call('GET', KEYS[1]))
if standing and standing.attempt == ARGV[1] and standing.claimed == ARGV[2] then
  redis.call('SET', KEYS[1], ARGV[1] .. ' failed 0 ' .. string.format('%.0f', standing.requested) .. ' ' .. standing.signer .. ' - -', 'PX', ARGV[3])
end
return 1`;

/** KEYS: mark of completeness, a state. Replies 1 when the view is complete in this run, and the state. */
export const READ = `${PRESENT_RUN}
return {redis.call('GET', KEYS[1]) == run and 1 or 0, redis.call('GET', KEYS[2])}`;

/** KEYS: mark of completeness, places. */
export const STANDING = `${PRESENT_RUN}
return {run, redis.call('GET', KEYS[1]), redis.call('HGETALL', KEYS[2])}`;

/**
 * KEYS: places, then claim and state of each. ARGV: field of the place or '', its expected value, its new value,
 * milliseconds for which final states are kept; then attempt, signer, status, revision, time of the request and state
 * of each. Replies 0, and does nothing, when the place has another value.
 */
export const APPLY = `${LINE}
if ARGV[1] ~= '' then
  if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
local function is_truer(said, standing)
  if not standing then return true end
  local is_confirmed = standing.claimed == '-'
  if said.attempt == standing.attempt then return not is_confirmed or said.revision > standing.revision end
  if standing.status == 'succeeded' then return false end
  local is_later = said.requested > standing.requested
  if said.revision == 0 then return is_later and (not is_confirmed or standing.status == 'failed') end
  if standing.revision == 0 then return is_later or said.status ~= 'failed' end
  return is_later or said.signer == standing.signer
end
for i = 1, (#KEYS - 1) / 2 do
  local at = 6 * i - 1
  local said = {
    attempt = ARGV[at], signer = ARGV[at + 1], status = ARGV[at + 2], revision = tonumber(ARGV[at + 3]),
    requested = tonumber(ARGV[at + 4])
  }
  if is_truer(said, parse(redis.call('GET', KEYS[2 * i]))) then
    local line = table.concat({said.attempt, said.status, ARGV[at + 3], ARGV[at + 4], said.signer, '-', '-'}, ' ')
    if said.status == 'failed' then redis.call('SET', KEYS[2 * i], line, 'PX', ARGV[4])
    else redis.call('SET', KEYS[2 * i], line) end
    if said.status == 'pending' then redis.call('SET', KEYS[2 * i + 1], ARGV[at + 5])
    else redis.call('SET', KEYS[2 * i + 1], ARGV[at + 5], 'PX', ARGV[4]) end
  end
end
return 1`;

/** KEYS: mark of completeness. ARGV: the run in which the logs were applied completely. */
export const COMPLETE = `${PRESENT_RUN}
if run == ARGV[1] then redis.call('SET', KEYS[1], run) end
return 1`;

/**
 * KEYS: a bucket, kept as the microsecond at which it is full. ARGV: the charge and the size of the bucket, in
 * microseconds. Replies how long until it is full, and the missing time; nothing was taken if that is not 0. A value
 * further ahead than a whole bucket was written before the clock was set back.
 */
export const TAKE = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local charge, size = tonumber(ARGV[1]), tonumber(ARGV[2])
local standing = math.min(math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now), now + size)
local full_at = math.max(now, standing + charge)
local lack = full_at - now - size
if charge > 0 and lack > 0 then return {string.format('%.0f', standing - now), string.format('%.0f', lack)} end
if full_at > now then
  redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', math.ceil((full_at - now) / 1000))
else redis.call('DEL', KEYS[1]) end
return {string.format('%.0f', full_at - now), '0'}`;
