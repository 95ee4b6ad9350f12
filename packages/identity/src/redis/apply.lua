#!lua
-- Applies link facts of one partition in order, each once: the one place where the graph changes.
-- Redis runs this alone and whole; with the first line it is refused as a whole when memory is out.
-- KEYS  epoch, progress
-- ARGV  namespace, source, after, through, unique kinds, identities max, anonymous ids max, window ms, then a blob a fact
-- Reply applied offset before this call, then an entry a fact: 'P' parked, '' done before, else its recorded decisions
-- The blobs and entries are described in wire.ts, the keys in layout.ts.
local namespace, source = ARGV[1], ARGV[2]
local after, through = tonumber(ARGV[3]), tonumber(ARGV[4])
local unique_kinds = ARGV[5]
local identities_max, anonymous_max, window_ms = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local FIRST_FACT = 9
local ZERO_KEY = string.rep('\0', 16)

if redis.call('EXISTS', KEYS[1]) == 0 then return redis.error_reply('NOEPOCH the identity graph has no epoch') end
local applied = tonumber(redis.call('HGET', KEYS[2], source) or -1)
if applied < after then return redis.error_reply('BEHIND ' .. string.format('%.0f', applied)) end

-- Strings are not compared with `<`: that follows the server's locale, not the bytes.
local function less(a, b)
  local a1, a2, a3, a4 = struct.unpack('>I4I4I4I4', a)
  local b1, b2, b3, b4 = struct.unpack('>I4I4I4I4', b)
  if a1 ~= b1 then return a1 < b1 end
  if a2 ~= b2 then return a2 < b2 end
  if a3 ~= b3 then return a3 < b3 end
  return a4 < b4
end

local function open_environment(id)
  local prefix = '{' .. id .. '}'
  local env = {
    indexes = namespace .. 'i:' .. prefix .. ':',
    members = namespace .. 'm:' .. prefix .. ':',
    fences = namespace .. 'f:' .. prefix .. ':',
    outbox = namespace .. 'o:' .. prefix,
    holds = redis.call('HGETALL', namespace .. 'h:' .. prefix),
  }
  return env
end

-- 14 bits of the key, as in layout.ts.
local function bucket_of(key) return math.floor(struct.unpack('>I2', key) / 4) end
local function root_of(env, key) return redis.call('HGET', env.indexes .. bucket_of(key), key) end

local function is_fenced(env, key, fact)
  local cutoff = tonumber(redis.call('HGET', env.fences .. bucket_of(key), key) or nil)
  return cutoff ~= nil and (fact.received_at <= cutoff or fact.event_time <= cutoff)
end

local function touches(env, step, held, held_root)
  if step.a == held or step.b == held then return true end
  return held_root and (root_of(env, step.a) == held_root or root_of(env, step.b) == held_root)
end

local function is_parked(env, fact)
  for at = 1, #env.holds, 2 do
    if fact.received_at > tonumber(env.holds[at + 1]) then
      local held_root = root_of(env, env.holds[at])
      for _, step in ipairs(fact.steps) do
        if touches(env, step, env.holds[at], held_root) then return true end
      end
    end
  end
  return false
end

-- One side of a link: a component, or an identity that is linked to nobody and has no entry.
local function open_side(env, root, key, kind, fact)
  if not root then return { root = key, linked = false, size = 1, values = { kind .. fact.received_at_bytes } } end
  return { root = root, linked = true, size = redis.call('HLEN', env.members .. root) }
end

local function values_of(env, side)
  side.values = side.values or redis.call('HVALS', env.members .. side.root)
  return side.values
end

-- Key, value, key, value.
local function members_of(env, side)
  if side.linked then return redis.call('HGETALL', env.members .. side.root) end
  return { side.root, side.values[1] }
end

local function have_kind_in_common(env, link, a, b)
  local kinds = {}
  for _, value in ipairs(values_of(env, a)) do kinds[string.sub(value, 1, 1)] = true end
  for _, value in ipairs(values_of(env, b)) do
    local kind = string.sub(value, 1, 1)
    if kinds[kind] then
      if link == 'a' then
        if string.find(unique_kinds, kind, 1, true) then return true end
      elseif kind ~= 'a' then
        return true
      end
    end
  end
  return false
end

local function anonymous_ids_in(env, side, since)
  local count = 0
  for _, value in ipairs(values_of(env, side)) do
    local kind, linked_at = struct.unpack('>c1I6', value)
    if kind == 'a' and linked_at > since then count = count + 1 end
  end
  return count
end

local function refusal_of(env, fact, link, a, b)
  if a.size + b.size > identities_max then return 'i' end
  if have_kind_in_common(env, link, a, b) then return link == 'a' and 'u' or 's' end
  if a.size + b.size > anonymous_max then
    local since = fact.received_at - window_ms
    if anonymous_ids_in(env, a, since) + anonymous_ids_in(env, b, since) > anonymous_max then return 'a' end
  end
  return nil
end

local function point_to(env, members, root)
  local moved = {}
  for at = 1, #members, 2 do
    redis.call('HSET', env.indexes .. bucket_of(members[at]), members[at], root)
    moved[#moved + 1] = members[at] .. members[at + 1]
  end
  return moved
end

-- Moves everybody of `lost` to the root of `kept`. Putting a member into a large hash costs a walk through it, so the
-- members of the smaller side are put into the hash of the larger one.
local function join(env, kept, lost)
  local lost_members = members_of(env, lost)
  local moved = point_to(env, lost_members, kept.root)
  if kept.linked and kept.size >= lost.size then
    redis.call('HSET', env.members .. kept.root, unpack(lost_members))
    if lost.linked then redis.call('DEL', env.members .. lost.root) end
    return moved
  end
  local kept_members = members_of(env, kept)
  -- A root without an entry is linked for the first time: it moves to itself.
  if not kept.linked then moved[#moved + 1] = point_to(env, kept_members, kept.root)[1] end
  if lost.linked then
    redis.call('RENAME', env.members .. lost.root, env.members .. kept.root)
  else
    redis.call('HSET', env.members .. kept.root, unpack(lost_members))
  end
  redis.call('HSET', env.members .. kept.root, unpack(kept_members))
  return moved
end

-- Outcome, reason, root, moved identities. Nothing is written before the last check has passed.
local function judge(env, fact, step)
  if step.blocked then return 'r', 'b', ZERO_KEY, {} end
  if is_fenced(env, step.a, fact) or is_fenced(env, step.b, fact) then return 'r', 'f', ZERO_KEY, {} end
  local root_a, root_b = root_of(env, step.a), root_of(env, step.b)
  if step.a == step.b or (root_a and root_a == root_b) then return 'n', '-', root_a or step.a, {} end
  if root_b then
    for _, other in ipairs(step.others) do
      if root_of(env, other) == root_b then return 'm', '-', ZERO_KEY, {} end
    end
  end
  local a = open_side(env, root_a, step.a, step.a_kind, fact)
  local b = open_side(env, root_b, step.b, step.b_kind, fact)
  local reason = refusal_of(env, fact, step.link, a, b)
  if reason then return 'r', reason, ZERO_KEY, {} end
  local kept, lost = a, b
  if less(b.root, a.root) then kept, lost = b, a end
  return 'l', '-', kept.root, join(env, kept, lost)
end

local function decide(env, fact, step)
  local outcome, reason, root, moved = judge(env, fact, step)
  return step.link .. step.a_kind .. step.b_kind .. outcome .. reason .. step.a .. step.b .. root
    .. struct.pack('>I2', #moved) .. table.concat(moved)
end

local function read_step(blob, at)
  local step = {}
  local blocked, others
  step.link, step.a_kind, step.b_kind, blocked, step.a, step.b, others, at =
    struct.unpack('>c1c1c1Bc16c16B', blob, at)
  step.blocked = blocked == 1
  step.others = {}
  for other = 1, others do
    step.others[other] = string.sub(blob, at, at + 15)
    at = at + 16
  end
  return step, at
end

local function read_fact(blob)
  local offset, received_at, event_time, environment, steps, at = struct.unpack('>I6I6I6Bc0B', blob)
  local fact = { offset = offset, received_at = received_at, event_time = event_time, steps = {} }
  fact.received_at_bytes = string.sub(blob, 7, 12)
  fact.environment = environment
  for step = 1, steps do fact.steps[step], at = read_step(blob, at) end
  return fact
end

local function apply(env, fact)
  if is_parked(env, fact) then return 'P' end
  local entries = {}
  for at, step in ipairs(fact.steps) do entries[at] = decide(env, fact, step) end
  return table.concat(entries)
end

local environments, reply = {}, { string.format('%.0f', applied) }
for at = FIRST_FACT, #ARGV do
  local fact = read_fact(ARGV[at])
  local env = environments[fact.environment] or open_environment(fact.environment)
  environments[fact.environment] = env
  local field = source .. '/' .. string.format('%.0f', fact.offset)
  local entry
  if fact.offset <= applied then
    entry = redis.call('HGET', env.outbox, field) or ''
  else
    entry = apply(env, fact)
    redis.call('HSET', env.outbox, field, entry)
  end
  reply[#reply + 1] = entry
end
if through > applied then redis.call('HSET', KEYS[2], source, string.format('%.0f', through)) end
return reply
