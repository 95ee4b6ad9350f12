-- Erasure: takes identities of one environment out of their components. Those who stay keep their root, also where it is
-- one of those who go; a fence on it tells the graph's script that it may be (components.lua).
-- KEYS  epoch, leases of holds
-- ARGV  namespace, environment, erasure id, then the identity keys
-- Reply how many of them stood in a component
if redis.call('EXISTS', KEYS[1]) == 0 then return redis.error_reply(NO_EPOCH) end
if redis.call('HEXISTS', KEYS[2], ARGV[3]) == 0 then return redis.error_reply('NOHOLD there is none') end
local indexes = name_of(ARGV[1], FAMILY.index, ARGV[2]) .. ':'
local components = name_of(ARGV[1], FAMILY.component, ARGV[2]) .. ':'
local unlinks = name_of(ARGV[1], FAMILY.unlinks, ARGV[2])
-- Reads everything before it writes. A script that failed half-way would seem done when it is repeated.
local forgotten, buckets, parts = {}, {}, {}
for at = 4, #ARGV do
  local key = ARGV[at]
  local index = indexes .. bucket_of(key)
  local root = redis.call('HGET', index, key)
  if root then
    forgotten[key], buckets[key] = true, index
    parts[root] = parts[root] or redis.call('GET', components .. root) or ''
  end
end

for root, value in pairs(parts) do
  local name, kept, kinds, anonymous_ids = components .. root, {}, 0, 0
  for at = HEADER_BYTES + 1, #value, MEMBER_BYTES do
    local member = string.sub(value, at, at + MEMBER_BYTES - 1)
    if not forgotten[string.sub(member, 1, KEY_BYTES)] then
      local kind = string.sub(member, KEY_BYTES + 1, KEY_BYTES + 1)
      kinds = bit.bor(kinds, KIND_BITS[kind])
      if kind == 'a' then anonymous_ids = anonymous_ids + 1 end
      kept[#kept + 1] = member
    end
  end
  if #kept == 0 then
    redis.call('DEL', name)
  else
    redis.call('SET', name, struct.pack('>I2I2', kinds, anonymous_ids) .. table.concat(kept))
  end
end
local count = 0
for key, index in pairs(buckets) do count = count + redis.call('HDEL', index, key) end
-- The fences refuse the same facts as these sides: no unlink of this person is later than the cut-off.
local suspects = name_of(ARGV[1], FAMILY.suspects, ARGV[2])
for at = 4, #ARGV do
  redis.call('HDEL', unlinks, ARGV[at])
  redis.call('HDEL', suspects, ARGV[at])
end
return count
