#!lua
-- Applies link facts of one partition in order, each once: the one place where the graph changes.
-- Redis runs this alone and whole; with the first line it is refused as a whole when memory is out.
-- KEYS  epoch, progress
-- ARGV  namespace, source, after, through, unique kinds, identities max, anonymous ids max, window ms, facts, then the
--       environments that the facts speak of
-- Reply an entry a fact, one behind the other: 'P' parked, '' done before, else its recorded decisions; fewer entries
--       than facts where the next one can only be decided with its other keys, which are rarely needed and left out
-- Facts and entries are described in wire.ts, the keys in layout.ts.
-- What a call reads it keeps, and what it changes it writes once, at its end: calls of Redis are what a link costs.
local namespace, source = ARGV[1], ARGV[2]
local after, through = tonumber(ARGV[3]), tonumber(ARGV[4])
local unique_kinds = ARGV[5]
local identities_max, anonymous_max, window_ms = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local facts = ARGV[9]
local FIRST_ENVIRONMENT = 10
local ZERO_KEY = string.rep('\0', 16)
local MEMBER_BYTES = 23
local HEADER_BYTES = 4
-- Below this a component is written whole: Redis keeps as much room again behind a value that is appended to.
local APPENDED_MEMBERS_MIN = 16
local OTHERS_LEFT_OUT = 255
local KIND_BITS = { a = 1, p = 2, s = 4, e = 8, g = 16, l = 32, d = 64, m = 128, c = 256, u = 512 }

local call, unpack_bytes, pack_bytes = redis.call, struct.unpack, struct.pack
local sub, byte, concat, floor = string.sub, string.byte, table.concat, math.floor

if call('EXISTS', KEYS[1]) == 0 then return redis.error_reply('NOEPOCH the identity graph has no epoch') end
local applied = tonumber(call('HGET', KEYS[2], source) or -1)
if applied < after then return redis.error_reply('BEHIND ' .. string.format('%.0f', applied)) end

-- Strings are not compared with `<`: that follows the server's locale, not the bytes.
local function less(a, b)
  local a1, a2, a3, a4 = unpack_bytes('>I4I4I4I4', a)
  local b1, b2, b3, b4 = unpack_bytes('>I4I4I4I4', b)
  if a1 ~= b1 then return a1 < b1 end
  if a2 ~= b2 then return a2 < b2 end
  if a3 ~= b3 then return a3 < b3 end
  return a4 < b4
end

local function open_environment(id)
  local prefix = '{' .. id .. '}'
  return {
    indexes = namespace .. 'i:' .. prefix .. ':',
    members = namespace .. 'm:' .. prefix .. ':',
    fences = namespace .. 'f:' .. prefix .. ':',
    outbox = namespace .. 'o:' .. prefix,
    fenced = call('GET', namespace .. 'f:' .. prefix),
    holds = call('HGETALL', namespace .. 'h:' .. prefix),
    -- By identity key: its component, or false while it is linked to nobody.
    components = {},
    -- By root as stored.
    stored = {},
    changed = {},
    decided = {},
  }
end

-- 14 bits of the key, as in layout.ts.
local function bucket_of(key)
  local high, low = byte(key, 1, 2)
  return high * 64 + floor(low / 4)
end

-- Fences are few: a map with a bit a bucket says where to look.
local function is_fenced(env, key, fact)
  if not env.fenced then return false end
  local bucket = bucket_of(key)
  local bits = byte(env.fenced, floor(bucket / 8) + 1) or 0
  if floor(bits / 2 ^ (7 - bucket % 8)) % 2 == 0 then return false end
  local cutoff = tonumber(call('HGET', env.fences .. bucket, key) or nil)
  return cutoff ~= nil and (fact.received_at <= cutoff or fact.event_time <= cutoff)
end

-- A component: root, size, kinds (a bit each), number of anonymous ids, members in parts. `root` of a part is what the
-- index of its members says in Redis.
local function load_component(env, root)
  local value = call('GET', env.members .. root)
  local kinds, anonymous_ids = unpack_bytes('>I2I2', value)
  local blob = sub(value, HEADER_BYTES + 1)
  local component = { root = root, size = #blob / MEMBER_BYTES, kinds = kinds, anonymous_ids = anonymous_ids }
  component.parts = { { blob = blob, root = root } }
  env.stored[root] = component
  return component
end

local function component_of(env, key)
  local component = env.components[key]
  if component == nil then
    local root = call('HGET', env.indexes .. bucket_of(key), key)
    component = root and (env.stored[root] or load_component(env, root))
    env.components[key] = component
  end
  while component and component.into do component = component.into end
  return component
end

local function new_component(key, kind, fact)
  local parts = { { blob = key .. kind .. fact.received_at_bytes } }
  local component = { root = key, size = 1, kinds = KIND_BITS[kind], parts = parts, is_new = true }
  component.anonymous_ids = kind == 'a' and 1 or 0
  return component
end

local function touches(env, step, held, held_component)
  if step.a == held or step.b == held then return true end
  return held_component and (component_of(env, step.a) == held_component or component_of(env, step.b) == held_component)
end

local function is_parked(env, fact)
  for at = 1, #env.holds, 2 do
    if fact.received_at > tonumber(env.holds[at + 1]) then
      local held_component = component_of(env, env.holds[at])
      for _, step in ipairs(fact.steps) do
        if touches(env, step, env.holds[at], held_component) then return true end
      end
    end
  end
  return false
end

local function have_kind_in_common(link, a, b)
  local both = bit.band(a.kinds, b.kinds)
  if both == 0 then return false end
  if link ~= 'a' then return both ~= KIND_BITS.a end
  for at = 1, #unique_kinds do
    if bit.band(both, KIND_BITS[sub(unique_kinds, at, at)]) ~= 0 then return true end
  end
  return false
end

local function recent_anonymous_ids_in(component, since)
  local count = 0
  for _, part in ipairs(component.parts) do
    for at = 17, #part.blob, MEMBER_BYTES do
      local kind, linked_at = unpack_bytes('>c1I6', part.blob, at)
      if kind == 'a' and linked_at > since then count = count + 1 end
    end
  end
  return count
end

local function refusal_of(fact, link, a, b)
  if a.size + b.size > identities_max then return 'i' end
  if have_kind_in_common(link, a, b) then return link == 'a' and 'u' or 's' end
  if a.anonymous_ids + b.anonymous_ids > anonymous_max then
    local since = fact.received_at - window_ms
    if recent_anonymous_ids_in(a, since) + recent_anonymous_ids_in(b, since) > anonymous_max then return 'a' end
  end
  return nil
end

-- Everybody of `lost` moves to the root of `kept`. Returns their number and their members.
local function join(env, kept, lost)
  local blobs, moved = {}, lost.size
  for at, part in ipairs(lost.parts) do blobs[at] = part.blob end
  -- A root without an entry is linked for the first time: it moves to itself.
  if kept.is_new then
    blobs[#blobs + 1] = kept.parts[1].blob
    moved = moved + 1
  end
  for _, part in ipairs(lost.parts) do kept.parts[#kept.parts + 1] = part end
  kept.size = kept.size + lost.size
  kept.kinds = bit.bor(kept.kinds, lost.kinds)
  kept.anonymous_ids = kept.anonymous_ids + lost.anonymous_ids
  kept.is_new = nil
  lost.into, lost.parts, env.changed[lost], env.changed[kept] = kept, nil, nil, true
  return moved, concat(blobs)
end

-- Outcome, reason, root, number and members of those who moved. Nothing changes before the last check has passed.
local function judge(env, fact, step)
  if step.blocked then return 'r', 'b', ZERO_KEY, 0, '' end
  if is_fenced(env, step.a, fact) or is_fenced(env, step.b, fact) then return 'r', 'f', ZERO_KEY, 0, '' end
  local a, b = component_of(env, step.a), component_of(env, step.b)
  if step.a == step.b or (a and a == b) then return 'n', '-', a and a.root or step.a, 0, '' end
  if b then
    for at = step.others, step.others_end, 16 do
      if component_of(env, sub(facts, at, at + 15)) == b then return 'm', '-', ZERO_KEY, 0, '' end
    end
  end
  a = a or new_component(step.a, step.a_kind, fact)
  b = b or new_component(step.b, step.b_kind, fact)
  local reason = refusal_of(fact, step.link, a, b)
  if reason then return 'r', reason, ZERO_KEY, 0, '' end
  local kept, lost = a, b
  if less(b.root, a.root) then kept, lost = b, a end
  env.components[step.a], env.components[step.b] = kept, kept
  return 'l', '-', kept.root, join(env, kept, lost)
end

local function decide(env, fact, step)
  local outcome, reason, root, moved, members = judge(env, fact, step)
  return step.link .. step.a_kind .. step.b_kind .. outcome .. reason .. step.a .. step.b .. root
    .. pack_bytes('>I2', moved) .. members
end

local function read_step(at)
  local step, blocked, others = {}
  step.link, step.a_kind, step.b_kind, blocked, step.a, step.b, others, at =
    unpack_bytes('>c1c1c1Bc16c16B', facts, at)
  step.blocked = blocked == 1
  if others == OTHERS_LEFT_OUT then step.needs_others, others = true, 0 end
  step.others, step.others_end = at, at + others * 16 - 1
  return step, step.others_end + 1
end

local function read_fact(at)
  local fact, steps = { steps = {} }
  fact.received_at_bytes = sub(facts, at + 6, at + 11)
  fact.offset, fact.received_at, fact.event_time, fact.environment, steps, at = unpack_bytes('>I6I6I6BB', facts, at)
  for step = 1, steps do fact.steps[step], at = read_step(at) end
  return fact, at
end

-- Other keys matter when the same id text untyped belongs to somebody who has an id of another type.
local function lacks_others(env, fact)
  local step = fact.steps[1]
  if not step or not step.needs_others then return false end
  local b = component_of(env, step.b)
  if not b or b == component_of(env, step.a) then return false end
  return bit.band(b.kinds, bit.bnot(KIND_BITS.a + KIND_BITS.u + KIND_BITS[step.a_kind])) ~= 0
end

local function apply(env, fact)
  if is_parked(env, fact) then return 'P' end
  if #fact.steps == 1 then return decide(env, fact, fact.steps[1]) end
  local entries = {}
  for at, step in ipairs(fact.steps) do entries[at] = decide(env, fact, step) end
  return concat(entries)
end

-- Entries by offset, out of every record of the outbox that may hold one of this call.
local function read_recorded(env)
  local recorded = {}
  local prefix = source .. '/'
  for _, field in ipairs(call('HKEYS', env.outbox)) do
    if sub(field, 1, #prefix) == prefix then
      local value, at = call('HGET', env.outbox, field), 1
      while at <= #value do
        local offset, length, entry_at = unpack_bytes('>I6I4', value, at)
        recorded[offset] = sub(value, entry_at, entry_at + length - 1)
        at = entry_at + length
      end
    end
  end
  return recorded
end

local function record(env, offset, entry)
  env.first, env.last = env.first or offset, offset
  env.decided[#env.decided + 1] = pack_bytes('>I6I4', offset, #entry) .. entry
end

local function point_to(env, blob, root)
  for at = 1, #blob, MEMBER_BYTES do
    local key = sub(blob, at, at + 15)
    call('HSET', env.indexes .. bucket_of(key), key, root)
  end
end

local function write_component(env, component)
  local name = env.members .. component.root
  local header = pack_bytes('>I2I2', component.kinds, component.anonymous_ids)
  local is_stored = component.parts[1].root == component.root
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
  for root, component in pairs(env.stored) do
    if component.into then call('DEL', env.members .. root) end
  end
  for component in pairs(env.changed) do write_component(env, component) end
  if env.first then
    local field = source .. '/' .. string.format('%.0f-%.0f', env.first, env.last)
    call('HSET', env.outbox, field, concat(env.decided))
  end
end

local environments, reply, at, last = {}, {}, 1, -1
for index = FIRST_ENVIRONMENT, #ARGV do environments[index - FIRST_ENVIRONMENT] = open_environment(ARGV[index]) end
while at <= #facts do
  local fact
  fact, at = read_fact(at)
  local env = environments[fact.environment]
  local entry
  if fact.offset <= applied then
    env.recorded = env.recorded or read_recorded(env)
    entry = env.recorded[fact.offset] or ''
  elseif lacks_others(env, fact) then
    through = last
    break
  else
    entry = #fact.steps == 0 and '' or apply(env, fact)
    record(env, fact.offset, entry)
  end
  last = fact.offset
  reply[#reply + 1] = pack_bytes('>I4', #entry)
  reply[#reply + 1] = entry
end
for _, env in pairs(environments) do write(env) end
if through > applied then call('HSET', KEYS[2], source, string.format('%.0f', through)) end
return concat(reply)
