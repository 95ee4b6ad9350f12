-- Sets fences of one environment, except where a later fence exists, and removes what they should have refused: members
-- of components first linked, consents received, and suspects and sides of unlinks created not later than the cut-off.
-- ARGV  namespace, environment, then alternating identity keys and cut-offs
-- Reply how many identities were removed from the graph, and how many consents
local namespace, environment = ARGV[1], ARGV[2]
local map = name_of(namespace, FAMILY.fences, environment)
local consents = name_of(namespace, FAMILY.consents, environment) .. ':'
-- Bytes of a stored consent before the time at which it was received (index.ts).
local RECEIVED_AT = 15
local keys, cutoffs, removed_consents = {}, {}, 0
for at = 3, #ARGV, 2 do
  local key, bucket = ARGV[at], bucket_of(ARGV[at])
  local fences = map .. ':' .. bucket
  local known, cutoff = tonumber(redis.call('HGET', fences, key) or 0), tonumber(ARGV[at + 1])
  -- The bitmap of buckets is written first, because a fence whose bucket is not in it would never be found.
  redis.call('SETBIT', map, bucket, 1)
  if cutoff > known then redis.call('HSET', fences, key, ARGV[at + 1]) end
  -- Not the stored cut-off: a later erasure removes data up to its own cut-off.
  keys[#keys + 1], cutoffs[key] = key, math.max(cutoffs[key] or 0, cutoff)
  local stored = redis.call('HGET', consents .. bucket, key)
  if stored and struct.unpack('>I6', stored, RECEIVED_AT + 1) <= cutoffs[key] then
    removed_consents = removed_consents + redis.call('HDEL', consents .. bucket, key)
  end
end
local function is_covered(key, linked_at) return linked_at <= cutoffs[key] end
local removed_identities = remove_identities(namespace, environment, keys, is_covered)
-- Also for identities without a component, which a restored earlier state may contain.
local suspects = name_of(namespace, FAMILY.suspects, environment)
local unlinks = name_of(namespace, FAMILY.unlinks, environment)
for _, key in ipairs(keys) do
  drop_suspect(suspects, key, cutoffs[key])
  local sides, kept = redis.call('HGET', unlinks, key) or '', {}
  for at = 1, #sides, SIDE_BYTES do
    if struct.unpack('>I6', sides, at + POSITION_BYTES) > cutoffs[key] then
      kept[#kept + 1] = string.sub(sides, at, at + SIDE_BYTES - 1)
    end
  end
  if #kept == 0 then
    redis.call('HDEL', unlinks, key)
  elseif #kept * SIDE_BYTES < #sides then
    redis.call('HSET', unlinks, key, table.concat(kept))
  end
end
return { removed_identities, removed_consents }
