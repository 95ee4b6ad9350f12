-- Sets fences of one environment, unless a later fence exists, and removes the data up to the cut-off that the fences
-- should have refused: links, consents, held suspects and unlink sides.
-- KEYS  run in which all fences were set; selects the node
-- ARGV  namespace, environment, then alternating identity keys and cut-offs
-- Reply the numbers of identities and consents removed
local namespace, environment = ARGV[1], ARGV[2]
local map = name_of(namespace, FAMILY.fences, environment)
local consents = name_of(namespace, FAMILY.consents, environment) .. ':'
-- Byte offset of the receipt time in a stored consent (index.ts).
local RECEIVED_AT = 15
local keys, cutoffs, removed_consents = {}, {}, 0
for at = 3, #ARGV, 2 do
  local key, bucket = ARGV[at], bucket_of(ARGV[at])
  local fences = map .. ':' .. bucket
  local known, cutoff = tonumber(redis.call('HGET', fences, key) or 0), tonumber(ARGV[at + 1])
  -- Set the bucket's bit first: a fence in an unmarked bucket would never be read.
  redis.call('SETBIT', map, bucket, 1)
  if cutoff > known then redis.call('HSET', fences, key, ARGV[at + 1]) end
  -- Use this erasure's cut-off even if a later cut-off is stored: the later erasure removes its own data.
  keys[#keys + 1], cutoffs[key] = key, math.max(cutoffs[key] or 0, cutoff)
  local stored = redis.call('HGET', consents .. bucket, key)
  if stored and struct.unpack('>I6', stored, RECEIVED_AT + 1) <= cutoffs[key] then
    removed_consents = removed_consents + redis.call('HDEL', consents .. bucket, key)
  end
end
local function is_covered(key, linked_at) return linked_at <= cutoffs[key] end
local removed_identities = remove_identities(namespace, environment, keys, is_covered)
-- Includes identities without a component, which an older backup may contain.
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
