-- Deletes a held suspect created up to `through`. Rulings are kept: a placeholder that is no longer blocked would
-- link different people again.
local function drop_suspect(name, key, through)
  local value = redis.call('HGET', name, key)
  if not value then return end
  local state, since = struct.unpack('>c1I6', value)
  if state == 'h' and since <= through then redis.call('HDEL', name, key) end
end

-- Removes identities from their components. The remaining members keep their root, even if the root itself is removed.
-- The graph script detects such a root by its fence (components.lua). `should_remove(key, linked_at)` selects the
-- members to remove. An identity that is missing from its component is always removed. Completes all reads before the
-- first write, so that a failed script can be retried. Returns the number of removed identities.
local function remove_identities(namespace, environment, keys, should_remove)
  local indexes = name_of(namespace, FAMILY.index, environment) .. ':'
  local components = name_of(namespace, FAMILY.component, environment) .. ':'
  local unlinks = name_of(namespace, FAMILY.unlinks, environment)
  local buckets, parts, changed = {}, {}, {}
  for _, key in ipairs(keys) do
    local bucket = indexes .. bucket_of(key)
    local root = redis.call('HGET', bucket, key)
    if root then
      buckets[key] = bucket
      parts[root] = parts[root] or redis.call('GET', components .. root) or ''
    end
  end

  for root, value in pairs(parts) do
    local kept, kinds, anonymous_ids = {}, 0, 0
    for at = HEADER_BYTES + 1, #value, MEMBER_BYTES do
      local member = string.sub(value, at, at + MEMBER_BYTES - 1)
      local key, kind, linked_at = struct.unpack('>c' .. KEY_BYTES .. 'c1I6', member)
      if buckets[key] and should_remove(key, linked_at) then
        changed[root] = true
      else
        buckets[key] = nil
        kinds = bit.bor(kinds, KIND_BITS[kind])
        if kind == 'a' then anonymous_ids = anonymous_ids + 1 end
        kept[#kept + 1] = member
      end
    end
    parts[root] = #kept > 0 and struct.pack('>I2I2', kinds, anonymous_ids) .. table.concat(kept)
  end

  for root in pairs(changed) do
    if parts[root] then redis.call('SET', components .. root, parts[root]) else redis.call('DEL', components .. root) end
  end
  local count = 0
  for key, bucket in pairs(buckets) do
    count = count + redis.call('HDEL', bucket, key)
    -- Unlink sides are no longer needed: the fence already refuses all facts that the sides would refuse.
    redis.call('HDEL', unlinks, key)
  end
  return count
end
