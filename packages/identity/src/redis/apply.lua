-- The second half of the script, behind components.lua: reads facts and decides them.

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

-- Outcome, reason, root, number and members of those who moved. Nothing changes before the last check has passed.
local function judge(env, fact, step)
  if step.blocked then return 'r', 'b', ZERO_KEY, 0, '' end
  if is_fenced(env, step.a, fact) or is_fenced(env, step.b, fact) then return 'r', 'f', ZERO_KEY, 0, '' end
  rejoin(env, step.a, step.a_kind, fact)
  rejoin(env, step.b, step.b_kind, fact)
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
  -- The larger side keeps its root: an identity moves at most ten times on its way into a person of a thousand.
  if b.size > a.size or b.size == a.size and less(b.root, a.root) then kept, lost = b, a end
  env.components[step.a], env.components[step.b] = kept, kept
  return 'l', '-', kept.root, join(env, kept, lost)
end

local function decide(env, fact, step)
  local outcome, reason, root, moved, members = judge(env, fact, step)
  return step.link .. step.a_kind .. step.b_kind .. outcome .. reason .. step.a .. step.b .. root
    .. pack_bytes('>I2', moved) .. members
end

-- Tables are made whole: one that grows field by field is made four times.
local function read_step(at)
  local link, a_kind, b_kind, blocked, a, b, others, others_at = unpack_bytes('>c1c1c1Bc16c16B', facts, at)
  local others_end = others == OTHERS_LEFT_OUT and others_at - 1 or others_at + others * 16 - 1
  return {
    link = link, a_kind = a_kind, b_kind = b_kind, a = a, b = b, blocked = blocked == 1,
    needs_others = others == OTHERS_LEFT_OUT, others = others_at, others_end = others_end,
  }, others_end + 1
end

local function read_fact(start)
  local offset, received_at, event_time, environment, count, at = unpack_bytes('>I6I6I6BB', facts, start)
  local steps = {}
  for step = 1, count do steps[step], at = read_step(at) end
  return {
    offset = offset, received_at = received_at, received_at_bytes = sub(facts, start + 6, start + 11),
    event_time = event_time, environment = environment, steps = steps,
  }, at
end

-- Other keys matter when the same id text untyped belongs to somebody who has an id of another type.
local function lacks_others(env, fact)
  local step = fact.steps[1]
  if not step or not step.needs_others then return false end
  local b = component_of(env, step.b)
  if not b then return is_left_root(env, step.b) end
  if b == component_of(env, step.a) then return false end
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

local function record(env, offset, line)
  env.first, env.last = env.first or offset, offset
  env.decided[#env.decided + 1] = line
end

local environments, reply, at, last = {}, {}, 1, -1
for index = FIRST_ENVIRONMENT, #ARGV do environments[index - FIRST_ENVIRONMENT] = open_environment(ARGV[index]) end
while at <= #facts do
  local fact
  fact, at = read_fact(at)
  local env = environments[fact.environment]
  local entry = ''
  if fact.offset <= applied then
    env.recorded = env.recorded or read_recorded(env)
    entry = env.recorded[fact.offset] or ''
  elseif lacks_others(env, fact) then
    through = last
    break
  elseif #fact.steps > 0 then
    entry = apply(env, fact)
  end
  local line = pack_bytes('>I6I4', fact.offset, #entry) .. entry
  if fact.offset > applied then record(env, fact.offset, line) end
  last = fact.offset
  reply[#reply + 1] = line
end
for _, env in pairs(environments) do write(env) end
if through > applied then call('HSET', KEYS[2], source, string.format('%.0f', through)) end
return concat(reply)
