-- Applies link facts of one partition in order and exactly once. Only this script changes the graph. Redis runs a
-- script atomically and, when out of memory, refuses it as a whole (see the flags in scripts.ts).
-- KEYS  epoch, progress, run in which all fences were set
-- ARGV  namespace, source, after, through, unique kinds, identities max, anonymous ids max, window ms, suspect ids
--       max, suspect window ms, suspects max, facts, then the facts' environments
-- Reply offset, length and entry per fact. An entry is 'P' and the person's root if parked, '' if already done,
--       otherwise the recorded decisions. The reply has fewer entries than facts if the next fact needs its other keys,
--       which are usually omitted, or if the call has reached its limit on fields
-- wire.ts describes facts and entries, layout.ts the keys. This file contains the components, unlink.lua splits them,
-- and facts.lua decides facts. Redis commands dominate the cost, so a call caches its reads and writes all changes at
-- the end.
local namespace, source = ARGV[1], ARGV[2]
local generation = tonumber(string.match(source, '^%d+'))
local after, through = tonumber(ARGV[3]), tonumber(ARGV[4])
local unique_kinds = ARGV[5]
local identities_max, anonymous_max, window_ms = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local suspect_ids_max = ARGV[9] == 'inf' and math.huge or tonumber(ARGV[9])
local suspect_window_ms, suspects_max = tonumber(ARGV[10]), tonumber(ARGV[11])
local facts = ARGV[12]
local FIRST_ENVIRONMENT = 13
local ZERO_KEY = string.rep('\0', 16)
-- Smaller components are rewritten because APPEND doubles the memory of a value.
local APPENDED_MEMBERS_MIN = 16
local OTHER_KEYS_OMITTED = 255
-- Later than any timestamp; used for identities without a hold.
local NEVER = math.huge
-- The component's holds have not been read yet.
local UNKNOWN = -1
-- Maximum number of arguments per command because Lua's stack is limited to about 8,000 values.
local FIELDS_MAX = 1000

local call, pack_bytes = redis.call, struct.pack
local sub, byte, concat, min = string.sub, string.byte, table.concat, math.min

if call('EXISTS', KEYS[1]) == 0 then return redis.error_reply(NO_EPOCH) end
if call('GET', KEYS[3]) ~= present_run() then return redis.error_reply(NO_FENCES) end
local applied = tonumber(call('HGET', KEYS[2], source) or -1)
if applied < after then return redis.error_reply('BEHIND ' .. string.format('%.0f', applied)) end

-- Compares keys by bytes. The operator `<` would use the server's locale.
local function is_less(a, b)
  local a1, a2, a3, a4 = unpack_bytes('>I4I4I4I4', a)
  local b1, b2, b3, b4 = unpack_bytes('>I4I4I4I4', b)
  if a1 ~= b1 then return a1 < b1 end
  if a2 ~= b2 then return a2 < b2 end
  if a3 ~= b3 then return a3 < b3 end
  return a4 < b4
end

local function load_environment(id)
  local fences, holds = name_of(namespace, FAMILY.fences, id), name_of(namespace, FAMILY.holds, id)
  local unlinks, suspects = name_of(namespace, FAMILY.unlinks, id), name_of(namespace, FAMILY.suspects, id)
  return {
    suspects = suspects,
    suspect_count = call('HLEN', suspects),
    -- Suspect states by identity key (false: not a suspect), and the values to write.
    suspect_states = {},
    new_suspects = {},
    indexes = name_of(namespace, FAMILY.index, id) .. ':',
    members = name_of(namespace, FAMILY.component, id) .. ':',
    fences = fences .. ':',
    outbox = name_of(namespace, FAMILY.outbox, id),
    unlinks = unlinks,
    latest_unlink = latest_unlink(unlinks),
    -- Hash of the facts decided before a rebuild, and the last of these facts.
    rebuilt = name_of(namespace, FAMILY.decided, id),
    last_rebuilt = call('HGET', name_of(namespace, FAMILY.decided, id), LAST_DECIDED),
    fenced = call('GET', fences),
    holds = call('EXISTS', holds) == 1 and holds,
    -- Cut-offs by identity key, for all identities in the facts.
    cutoffs = {},
    -- Components by identity key (false: not linked), and bucket names by identity key.
    components = {},
    names = {},
    -- Components by the root under which they are stored.
    stored = {},
    changed = {},
    decided = {},
  }
end

local function index_of(env, key)
  local name = env.names[key]
  if not name then
    name = env.indexes .. bucket_of(key)
    env.names[key] = name
  end
  return name
end

-- Few identities have fences, so a bitmap records which buckets contain any.
local function may_have_fence(env, key)
  if not env.fenced then return false end
  local bucket = bucket_of(key)
  local bits = byte(env.fenced, floor(bucket / 8) + 1) or 0
  return floor(bits / 2 ^ (7 - bucket % 8)) % 2 == 1
end

local function is_fenced(env, key, fact)
  if not may_have_fence(env, key) then return false end
  local cutoff = tonumber(call('HGET', env.fences .. bucket_of(key), key) or nil)
  return cutoff ~= nil and (fact.received_at <= cutoff or fact.event_time <= cutoff)
end

-- Reads hash fields with as few commands as possible. Missing fields are false.
local fields_read = 0
local function read_fields(name, keys, visit)
  for first = 1, #keys, FIELDS_MAX do
    local last = min(first + FIELDS_MAX - 1, #keys)
    local values = call('HMGET', name, unpack(keys, first, last))
    for at = first, last do visit(keys[at], values[at - first + 1]) end
  end
  fields_read = fields_read + #keys
end

-- Loads a component, whose members are split into parts. `root` in a part is the members' root in the stored index.
local function load_component(env, root)
  local value = call('GET', env.members .. root)
  local kinds, anonymous_ids = unpack_bytes('>I2I2', value)
  local blob = sub(value, HEADER_BYTES + 1)
  local component = {
    root = root, size = #blob / MEMBER_BYTES, kinds = kinds, anonymous_ids = anonymous_ids, is_new = false,
    merged_into = false, held_from = UNKNOWN, parts = { { blob = blob, root = root } },
  }
  env.stored[root] = component
  return component
end

local function component_of(env, key)
  local component = env.components[key]
  if component == nil then
    local root = call('HGET', index_of(env, key), key)
    component = root and (env.stored[root] or load_component(env, root))
    env.components[key] = component
  end
  while component and component.merged_into do component = component.merged_into end
  return component
end

local function new_component(env, key, kind, fact)
  return {
    root = key, size = 1, kinds = KIND_BITS[kind], anonymous_ids = kind == 'a' and 1 or 0, is_new = true,
    merged_into = false, held_from = env.cutoffs[key] or NEVER,
    parts = { { blob = key .. kind .. fact.received_at_bytes, root = false } },
  }
end

local function keys_of(component)
  local keys = {}
  for _, part in ipairs(component.parts) do
    for at = 1, #part.blob, MEMBER_BYTES do keys[#keys + 1] = sub(part.blob, at, at + 15) end
  end
  return keys
end

-- Whether the key belongs to an erased identity and is still the root of other members.
local function is_erased_root(env, key)
  if not may_have_fence(env, key) or component_of(env, key) then return false end
  local stored = env.stored[key]
  if stored then return not stored.merged_into end
  return call('EXISTS', env.members .. key) == 1
end

-- Adds an erased root to its former component when it is linked again. A new component would overwrite the former one.
local function rejoin(env, key, kind, fact)
  if not is_erased_root(env, key) then return end
  local component = env.stored[key] or load_component(env, key)
  component.parts[#component.parts + 1] = { blob = key .. kind .. fact.received_at_bytes, root = false }
  component.size = component.size + 1
  component.kinds = bit.bor(component.kinds, KIND_BITS[kind])
  component.anonymous_ids = component.anonymous_ids + (kind == 'a' and 1 or 0)
  component.held_from = UNKNOWN
  env.components[key], env.changed[component] = component, true
end

-- Moves all members of `lost` to the root of `kept`. Returns the number of moved members and their bytes.
local function join(env, kept, lost)
  local blobs, moved = {}, lost.size
  for at, part in ipairs(lost.parts) do blobs[at] = part.blob end
  -- A root that is linked for the first time also counts as moved.
  if kept.is_new then
    blobs[#blobs + 1] = kept.parts[1].blob
    moved = moved + 1
  end
  for _, part in ipairs(lost.parts) do kept.parts[#kept.parts + 1] = part end
  kept.size = kept.size + lost.size
  kept.kinds = bit.bor(kept.kinds, lost.kinds)
  kept.anonymous_ids = kept.anonymous_ids + lost.anonymous_ids
  -- UNKNOWN is less than any time, so the minimum is UNKNOWN if either value is.
  kept.held_from = min(kept.held_from, lost.held_from)
  kept.is_new = false
  lost.merged_into, lost.parts, env.changed[lost], env.changed[kept] = kept, nil, nil, true
  return moved, concat(blobs)
end

local function point_to(env, blob, root)
  for at = 1, #blob, MEMBER_BYTES do
    local key = sub(blob, at, at + 15)
    call('HSET', index_of(env, key), key, root)
  end
end

local function write_component(env, component)
  local name = env.members .. component.root
  local header = pack_bytes('>I2I2', component.kinds, component.anonymous_ids)
  local is_stored = component.parts[1].root == component.root and not component.must_rewrite
  local blobs = {}
  for at, part in ipairs(component.parts) do
    blobs[at] = part.blob
    if part.root ~= component.root then point_to(env, part.blob, component.root) end
  end
  if is_stored and component.size >= APPENDED_MEMBERS_MIN then
    call('SETRANGE', name, 0, header)
    call('APPEND', name, concat(blobs, '', 2))
  else
    call('SET', name, header .. concat(blobs))
  end
end

local function write(env)
  for key, value in pairs(env.new_suspects) do call('HSET', env.suspects, key, value) end
  for root, component in pairs(env.stored) do
    if component.merged_into then call('DEL', env.members .. root) end
  end
  for component in pairs(env.changed) do write_component(env, component) end
  if env.first then
    local field = source .. '/' .. string.format('%.0f-%.0f', env.first, env.last)
    call('HSET', env.outbox, field, concat(env.decided))
  end
end

-- Suspect states. ALLOWED and BLOCKED are also the link codes of rulings.
local HELD, ALLOWED, BLOCKED = 'h', 'w', 'k'

-- Suspect state of an identity, or false.
local function suspect_state_of(env, key)
  if env.suspect_count == 0 then return false end
  if env.suspect_states[key] == nil then
    local value = call('HGET', env.suspects, key)
    env.suspect_states[key] = value and sub(value, 1, 1)
  end
  return env.suspect_states[key]
end

local function mark_suspect(env, fact, key, state)
  if not suspect_state_of(env, key) then
    if state == HELD and env.suspect_count >= suspects_max then return end
    env.suspect_count = env.suspect_count + 1
  end
  env.suspect_states[key] = state
  env.new_suspects[key] = state .. fact.received_at_bytes .. pack_bytes('>I1I6', generation, fact.offset)
end
