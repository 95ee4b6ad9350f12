-- Rebuild: stores each identity's root. Later rows replace earlier rows but keep the link time.
-- KEYS  epoch
-- ARGV  namespace, then one blob per row: environment, identity key, root, kind and link time (wire.ts)
-- Components are read once and written once per call; layout.ts describes them.
if redis.call('EXISTS', KEYS[1]) == 1 then return redis.error_reply('EPOCH an epoch is set') end
local namespace = ARGV[1]

-- Members by component name and identity key.
local components = {}

local function read_component(name)
  if components[name] then return components[name] end
  local members = {}
  local value = redis.call('GET', name) or ''
  for at = HEADER_BYTES + 1, #value, MEMBER_BYTES do
    members[string.sub(value, at, at + 15)] = string.sub(value, at + 16, at + 22)
  end
  components[name] = members
  return members
end

local function write_component(name, members)
  local kinds, anonymous_ids, blobs = 0, 0, {}
  for key, member in pairs(members) do
    local kind = string.sub(member, 1, 1)
    kinds = bit.bor(kinds, KIND_BITS[kind])
    if kind == 'a' then anonymous_ids = anonymous_ids + 1 end
    blobs[#blobs + 1] = key .. member
  end
  if #blobs == 0 then return redis.call('DEL', name) end
  redis.call('SET', name, struct.pack('>I2I2', kinds, anonymous_ids) .. table.concat(blobs))
end

for at = 2, #ARGV do
  local environment, key, root, member = struct.unpack('>Bc0c16c16c7', ARGV[at])
  local index = name_of(namespace, FAMILY.index, environment) .. ':' .. bucket_of(key)
  local names = name_of(namespace, FAMILY.component, environment) .. ':'
  local known = redis.call('HGET', index, key)
  if known ~= root then
    if known then
      local old = read_component(names .. known)
      member = old[key] or member
      old[key] = nil
    end
    redis.call('HSET', index, key, root)
    read_component(names .. root)[key] = member
  end
end
for name, members in pairs(components) do write_component(name, members) end
return #ARGV - 1
