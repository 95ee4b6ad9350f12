import { PRESENT_RUN_LUA } from '@playline/stores/redis';

/** Identifies the current Redis process, because a restarted Redis may have lost the last writes. */
const RUN_LUA = `${PRESENT_RUN_LUA}
local run = present_run()
`;

/** A claim's fields: attempt, status, revision, request time, signer, digest and claim time, '-' if none. */
const CLAIM_LUA = `
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

/** The time by the Redis server's clock. `tostring` would round numbers to 14 digits. */
const CLOCK_LUA = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function whole(number) return string.format('%.0f', number) end
`;

/** Allows writes when Redis is out of memory. Only for scripts that apply the log or free memory. */
const ALLOW_OOM = '#!lua flags=allow-oom\n';

/** Pending assets: a hash from claim (a name with a brace) to environment, plus totals for assets and bytes. */
const PENDING_LUA = `
local function bytes_of(claim) return 4 * #claim + 1000 end
local function change_pending(pending, environment, assets, bytes)
  for _, name in ipairs({'', ':' .. environment}) do
    redis.call('HINCRBY', pending, 'assets' .. name, assets)
    redis.call('HINCRBY', pending, 'bytes' .. name, bytes)
  end
end
local function add_pending(pending, claim, environment)
  if redis.call('HSETNX', pending, claim, environment) == 1 then
    change_pending(pending, environment, 1, bytes_of(claim))
  end
end
local function remove_pending(pending, claim)
  local environment = redis.call('HGET', pending, claim)
  if not environment then return end
  redis.call('HDEL', pending, claim)
  change_pending(pending, environment, -1, -bytes_of(claim))
  if redis.call('HGET', pending, 'assets') == '0' then redis.call('DEL', pending) end
end
`;

/** Deletes a failed claim. The floor prevents deleted requests from becoming pending again. */
const FORGET_LUA = `
local function forget(floor, claim, requested, kept)
  redis.call('DEL', claim)
  if requested > tonumber(redis.call('GET', floor) or '0') then redis.call('SET', floor, whole(requested)) end
  redis.call('PEXPIRE', floor, kept)
end
`;

/** Counts a project's failed assets: each failure advances the stored time by an hour divided by the limit. */
const FAILED_LUA = `
local hour = 3600000
local function count_failed(key, changed, most)
  if changed < now - hour then return end
  local counted_until = math.max(tonumber(redis.call('GET', key) or '0'), changed) + hour / most
  redis.call('SET', key, whole(math.min(counted_until, now + hour)), 'PX', 2 * hour)
end
local function failed_wait(key, assets, most)
  return tonumber(redis.call('GET', key) or '0') - now + assets * hour / most - hour
end
`;

/**
 * KEYS: completeness marker, pending assets, marker of the last cleaning, failed assets; then one claim each. ARGV: '1'
 * to only check, expiry in ms, environment, limits (assets and bytes per environment, assets and bytes per project,
 * failed assets); then attempt, signer and digest for each claim.
 */
export const CLAIM = `${RUN_LUA}${CLAIM_LUA}${CLOCK_LUA}${PENDING_LUA}${FAILED_LUA}
if redis.call('GET', KEYS[1]) ~= run then return {'incomplete'} end
local pending, environment = KEYS[2], ARGV[3]
local taken, unknown, claimed = {'taken'}, {'unknown'}, {'claimed'}
local lines = {}
local assets, bytes = 0, 0
for i = 5, #KEYS do
  local stored = parse(redis.call('GET', KEYS[i]))
  local at = 3 * (i - 5) + 9
  local attempt, signer, digest = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local requested = now
  if stored and stored.claimed ~= '-' then
    if stored.digest == digest then
      attempt, signer, requested = stored.attempt, stored.signer, stored.requested
    else
      for _, value in ipairs({i - 5, stored.attempt, stored.claimed, now - tonumber(stored.claimed)}) do
        unknown[#unknown + 1] = value
      end
    end
  elseif stored then
    if stored.status == 'failed' then requested = math.max(now, stored.requested + 1)
    else taken[#taken + 1] = i - 5 end
  end
  if redis.call('HEXISTS', pending, KEYS[i]) == 0 then assets, bytes = assets + 1, bytes + bytes_of(KEYS[i]) end
  for _, value in ipairs({attempt, signer, whole(requested)}) do claimed[#claimed + 1] = value end
  lines[i] = attempt .. ' pending 0 ' .. whole(requested) .. ' ' .. signer .. ' ' .. digest .. ' ' .. whole(now)
end
if #taken > 1 then return taken end
if #unknown > 1 then return unknown end
if ARGV[1] == '1' then return claimed end
local function is_full()
  for at, name in ipairs({':' .. environment, ''}) do
    local held_assets = tonumber(redis.call('HGET', pending, 'assets' .. name) or '0')
    local held_bytes = tonumber(redis.call('HGET', pending, 'bytes' .. name) or '0')
    if held_assets + assets > tonumber(ARGV[2 * at + 2]) or held_bytes + bytes > tonumber(ARGV[2 * at + 3]) then return true end
  end
  return false
end
if assets > 0 then
  local wait = failed_wait(KEYS[4], assets, tonumber(ARGV[8]))
  if wait > 0 then return {'failing', whole(wait)} end
  if is_full() then return {'full', redis.call('SET', KEYS[3], '1', 'NX', 'PX', 60000) and whole(now) or ''} end
end
local added_assets, added_bytes = 0, 0
for i = 5, #KEYS do
  redis.call('SET', KEYS[i], lines[i], 'PX', ARGV[2])
  if redis.call('HSETNX', pending, KEYS[i], environment) == 1 then
    added_assets, added_bytes = added_assets + 1, added_bytes + bytes_of(KEYS[i])
  end
end
if added_assets > 0 then change_pending(pending, environment, added_assets, added_bytes) end
return claimed`;

/**
 * KEYS: pending assets; then claim and state for each asset. ARGV: attempt, signer, time, environment and state for
 * each asset. Returns the indexes of the claims that another attempt has taken.
 */
export const CONFIRM = `${ALLOW_OOM}${CLAIM_LUA}${PENDING_LUA}
local others = {}
for i = 1, (#KEYS - 1) / 2 do
  local claim, at = KEYS[2 * i], 5 * i - 4
  local attempt, signer, requested, environment, state = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local stored = parse(redis.call('GET', claim))
  if stored and stored.attempt ~= attempt then others[#others + 1] = i - 1
  elseif not stored or stored.claimed ~= '-' then
    redis.call('SET', claim, attempt .. ' pending 0 ' .. requested .. ' ' .. signer .. ' - -')
    redis.call('SET', KEYS[2 * i + 1], state)
    add_pending(KEYS[1], claim, environment)
  end
end
return others`;

/** KEYS: claim, pending assets, floor. ARGV: the claim's attempt and claim time, expiry of the floor in ms. */
export const LAPSE = `${ALLOW_OOM}${CLAIM_LUA}${CLOCK_LUA}${PENDING_LUA}${FORGET_LUA}
local stored = parse(redis.call('GET', KEYS[1]))
if stored and stored.attempt == ARGV[1] and stored.claimed == ARGV[2] then
  forget(KEYS[3], KEYS[1], stored.requested, ARGV[3])
  remove_pending(KEYS[2], KEYS[1])
end
return 1`;

/** KEYS: pending assets, floor. ARGV: the time up to which unconfirmed claims lapse, expiry of the floor in ms. */
export const CLEAN = `${ALLOW_OOM}${CLAIM_LUA}${CLOCK_LUA}${PENDING_LUA}${FORGET_LUA}
for _, claim in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.find(claim, '{', 1, true) then
    local stored = parse(redis.call('GET', claim))
    local has_lapsed = stored and stored.claimed ~= '-' and tonumber(stored.claimed) <= tonumber(ARGV[1])
    if has_lapsed then forget(KEYS[2], claim, stored.requested, ARGV[2]) end
    if has_lapsed or not stored then remove_pending(KEYS[1], claim) end
  end
end
return 1`;

/** KEYS: completeness marker, state, claim. Returns whether a missing state means that no request exists, and the state. */
export const READ = `${RUN_LUA}${CLAIM_LUA}
local state, stored = redis.call('GET', KEYS[2]), parse(redis.call('GET', KEYS[3]))
local is_known = not state and stored and stored.claimed == '-'
local is_complete = redis.call('GET', KEYS[1]) == run and not is_known
return {is_complete and 1 or 0, state}`;

/** KEYS: completeness marker, offsets. */
export const PROGRESS = `${RUN_LUA}
return {run, redis.call('GET', KEYS[1]), redis.call('HGETALL', KEYS[2])}`;

/**
 * KEYS: offsets; then claim, state, pending, settled, settled bytes, floor and failed for each asset. ARGV: field or
 * '', expected offset, new offset, expiry of final states in ms, limits (settled assets, bytes, failed assets); then
 * attempt, signer, status, revision, request time, environment, change time and state for each asset. Returns 0 if the
 * stored offset differs from the expected offset.
 */
export const APPLY = `${ALLOW_OOM}${CLAIM_LUA}${CLOCK_LUA}${PENDING_LUA}${FORGET_LUA}${FAILED_LUA}
if ARGV[1] ~= '' then
  if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
local kept, most_settled, most_bytes, most_failed = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local function is_newer(update, stored, floor)
  if not stored then return update.revision > 0 or update.requested > tonumber(redis.call('GET', floor) or '0') end
  local is_confirmed = stored.claimed == '-'
  if update.attempt == stored.attempt then return not is_confirmed or update.revision > stored.revision end
  if stored.status == 'succeeded' then return false end
  local is_later = update.requested > stored.requested
  if update.revision == 0 then return is_later and (not is_confirmed or stored.status == 'failed') end
  if stored.revision == 0 then return is_later or update.status ~= 'failed' end
  return is_later or update.signer == stored.signer
end
-- Removes the earliest settled assets, because the tables already contain their states.
local function settle(settled, settled_bytes, floor, claim)
  if redis.call('ZADD', settled, now, claim) == 1 then
    if redis.call('ZCARD', settled) == 1 then redis.call('SET', settled_bytes, bytes_of(claim))
    else redis.call('INCRBY', settled_bytes, bytes_of(claim)) end
  end
  while redis.call('ZCARD', settled) > most_settled
    or (redis.call('ZCARD', settled) > 1 and tonumber(redis.call('GET', settled_bytes) or '0') > most_bytes) do
    local removed = redis.call('ZPOPMIN', settled)[1]
    redis.call('DECRBY', settled_bytes, bytes_of(removed))
    local stored = parse(redis.call('GET', removed))
    -- A later attempt may be pending.
    if not stored or stored.status ~= 'pending' then
      redis.call('DEL', (string.gsub(removed, 'mint:claim:', 'mint:state:', 1)))
    end
    if stored and stored.status == 'failed' then forget(floor, removed, stored.requested, kept) end
  end
  redis.call('PEXPIRE', settled, kept)
  redis.call('PEXPIRE', settled_bytes, kept)
end
local function remove_settled(settled, settled_bytes, claim)
  if redis.call('ZREM', settled, claim) == 1 then redis.call('DECRBY', settled_bytes, bytes_of(claim)) end
end
for i = 1, math.floor((#KEYS - 1) / 7) do
  local at, key = 8 * i, 7 * i - 5
  local claim, state, pending, settled, settled_bytes = KEYS[key], KEYS[key + 1], KEYS[key + 2], KEYS[key + 3], KEYS[key + 4]
  local update = {
    attempt = ARGV[at], signer = ARGV[at + 1], status = ARGV[at + 2], revision = tonumber(ARGV[at + 3]),
    requested = tonumber(ARGV[at + 4])
  }
  local stored = parse(redis.call('GET', claim))
  if is_newer(update, stored, KEYS[key + 5]) then
    local line = table.concat({update.attempt, update.status, ARGV[at + 3], ARGV[at + 4], update.signer, '-', '-'}, ' ')
    if update.status == 'failed' then redis.call('SET', claim, line, 'PX', kept)
    else redis.call('SET', claim, line) end
    if update.status == 'pending' then
      redis.call('SET', state, ARGV[at + 7])
      remove_settled(settled, settled_bytes, claim)
      add_pending(pending, claim, ARGV[at + 5])
    else
      redis.call('SET', state, ARGV[at + 7], 'PX', kept)
      remove_pending(pending, claim)
      if update.status == 'failed' then count_failed(KEYS[key + 6], tonumber(ARGV[at + 6]), most_failed) end
      settle(settled, settled_bytes, KEYS[key + 5], claim)
    end
  end
end
return 1`;

/** KEYS: completeness marker. ARGV: run. */
export const COMPLETE = `${ALLOW_OOM}${RUN_LUA}
if run == ARGV[1] then redis.call('SET', KEYS[1], run) end
return 1`;

/**
 * KEYS: bucket, stored as the microsecond at which it is full again. ARGV: charge and size in microseconds. Returns the
 * time until the bucket is full and the missing time. A later stored time results from a clock change.
 */
export const TAKE = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local charge, size = tonumber(ARGV[1]), tonumber(ARGV[2])
local stored = math.min(math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now), now + size)
local full_at = math.max(now, stored + charge)
local lack = full_at - now - size
if charge > 0 and lack > 0 then return {string.format('%.0f', stored - now), string.format('%.0f', lack)} end
if full_at > now then
  redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', math.ceil((full_at - now) / 1000))
else redis.call('DEL', KEYS[1]) end
return {string.format('%.0f', full_at - now), '0'}`;
