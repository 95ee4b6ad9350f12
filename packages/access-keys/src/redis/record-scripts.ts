import { PRESENT_RUN } from './scripts.ts';

/** KEYS: mark of completeness, places. Replies the present run, the run of the mark or nil, and the places. */
export const RECORDS_STANDING = `${PRESENT_RUN}
return {run, redis.call('GET', KEYS[1]), redis.call('HGETALL', KEYS[2])}`;

/**
 * KEYS: mark of completeness, version, records. ARGV: the version that the caller has, or ''. Replies nothing when the
 * records are incomplete in this run; else the version, and all records if it differs.
 */
export const READ_RECORDS = `${PRESENT_RUN}
local version = redis.call('GET', KEYS[2])
if not version or redis.call('GET', KEYS[1]) ~= run then return {} end
if version == ARGV[1] then return {version} end
return {version, redis.call('HVALS', KEYS[3])}`;

/**
 * KEYS: records, places, version, mark of completeness. ARGV: JSON of the update. Replies 0, and does nothing, when it
 * should be complete in a run that is over.
 *
 * A place is moved only from its expected value. If Redis lost records and places meanwhile, the records are read
 * again, and the view stays incomplete until then.
 */
export const UPDATE_RECORDS = `${PRESENT_RUN}
local given = cjson.decode(ARGV[1])
if given.run ~= '' and given.run ~= run then return 0 end
local function standing(id)
  local text = redis.call('HGET', KEYS[1], id)
  if not text then return -1, -1 end
  local revision, offset = string.match(text, '^(%d+) %d+ (%d+) ')
  return tonumber(revision), tonumber(offset)
end
for _, gone in ipairs(given.removed) do
  local revision, offset = standing(gone.id)
  if revision == gone.revision and offset == gone.offset then redis.call('HDEL', KEYS[1], gone.id) end
end
for _, change in ipairs(given.changes) do
  local revision, offset = standing(change.id)
  if change.revision > revision or (change.revision == revision and change.offset > offset) then
    redis.call('HSET', KEYS[1], change.id, change.text)
  end
end
if given.isRestored then redis.call('DEL', KEYS[2]) end
local isWhole = true
for _, move in ipairs(given.moves) do
  local place = redis.call('HGET', KEYS[2], move.partition) or ''
  if given.isRestored or place == move.from then redis.call('HSET', KEYS[2], move.partition, move.to)
  else isWhole = false end
end
redis.call('SET', KEYS[3], given.version)
if given.run ~= '' and isWhole then redis.call('SET', KEYS[4], run) end
return 1`;
