-- Parses and decides facts. The last file of the script, after components.lua, unlink.lua and logged.lua.

-- A call ends after it has read this many fields, which takes about two milliseconds.
local FIELDS_READ_MAX = 8000

local environments = {}
local IS_UNLINK, IS_LOGGED = 255, 254

-- Calls `visit` with each key and its hold's cut-off, or NEVER.
local function read_cutoffs(env, keys, visit)
  read_fields(env.holds, keys, function(key, cutoff) visit(key, tonumber(cutoff or nil) or NEVER) end)
end

-- Keys of all identities in a fact, in order.
local function named_by(fact)
  if fact.unlink then return fact.unlink end
  local names = {}
  for _, step in ipairs(fact.steps) do names[#names + 1], names[#names + 2] = step.a, step.b end
  return names
end

-- Reads the holds of all identities in the facts with one command per environment.
local function read_named_cutoffs(list)
  local names = {}
  for _, fact in ipairs(list) do
    local env = fact.env
    if env.holds then
      names[env] = names[env] or {}
      for _, key in ipairs(named_by(fact)) do
        if not env.cutoffs[key] then
          env.cutoffs[key] = NEVER
          names[env][#names[env] + 1] = key
        end
      end
    end
  end
  for env, keys in pairs(names) do read_cutoffs(env, keys, function(key, cutoff) env.cutoffs[key] = cutoff end) end
end

-- Earliest cut-off among the members' holds.
local function held_from(env, component)
  if component.held_from ~= UNKNOWN then return component.held_from end
  local earliest = NEVER
  read_cutoffs(env, keys_of(component), function(_, cutoff) earliest = min(earliest, cutoff) end)
  component.held_from = earliest
  return earliest
end

-- Root of the person whose hold delays the fact, or nil.
local function parked_by(env, fact)
  if not env.holds then return nil end
  for _, key in ipairs(named_by(fact)) do
    local component = component_of(env, key)
    local from = component and held_from(env, component) or env.cutoffs[key]
    if fact.received_at > from then return component and component.root or key end
  end
  return nil
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

-- Whether the id linked with an anonymous id is held, or must be held because it has too many anonymous ids.
local function is_held(env, fact, step, a, b)
  if step.a_kind ~= 'a' and step.b_kind ~= 'a' then return false end
  local linked_id = step.b_kind == 'a' and step.a_kind ~= 'a' and step.a or step.b
  local state = suspect_state_of(env, linked_id)
  if state then return state == HELD end
  if a.anonymous_ids + b.anonymous_ids <= suspect_ids_max then return false end
  local since = fact.received_at - suspect_window_ms
  if recent_anonymous_ids_in(a, since) + recent_anonymous_ids_in(b, since) <= suspect_ids_max then return false end
  mark_suspect(env, fact, linked_id, HELD)
  return true
end

local function refusal_of(env, fact, step, a, b)
  local link = step.link
  if are_separated(env, fact, a, b) then return 'x' end
  if a.size + b.size > identities_max then return 'i' end
  if have_kind_in_common(link, a, b) then return link == 'a' and 'u' or 's' end
  if is_held(env, fact, step, a, b) then return 'h' end
  if a.anonymous_ids + b.anonymous_ids > anonymous_max then
    local since = fact.received_at - window_ms
    if recent_anonymous_ids_in(a, since) + recent_anonymous_ids_in(b, since) > anonymous_max then return 'a' end
  end
  return nil
end

-- Returns outcome, reason, root, number of moved identities and their members. Joins persons only if all checks pass.
local function decide_outcome(env, fact, step)
  if step.blocked then return 'r', 'b', ZERO_KEY, 0, '' end
  if is_fenced(env, step.a, fact) or is_fenced(env, step.b, fact) then return 'r', 'f', ZERO_KEY, 0, '' end
  if step.link == ALLOWED or step.link == BLOCKED then
    mark_suspect(env, fact, step.a, step.link)
    return 'n', step.link, step.a, 0, ''
  end
  if suspect_state_of(env, step.a) == BLOCKED or suspect_state_of(env, step.b) == BLOCKED then
    return 'r', 'b', ZERO_KEY, 0, ''
  end
  rejoin(env, step.a, step.a_kind, fact)
  rejoin(env, step.b, step.b_kind, fact)
  local a, b = component_of(env, step.a), component_of(env, step.b)
  if step.a == step.b or (a and a == b) then return 'n', '-', a and a.root or step.a, 0, '' end
  if b then
    for at = step.others, step.others_end, 16 do
      if component_of(env, sub(facts, at, at + 15)) == b then return 'm', '-', ZERO_KEY, 0, '' end
    end
  end
  a = a or new_component(env, step.a, step.a_kind, fact)
  b = b or new_component(env, step.b, step.b_kind, fact)
  local reason = refusal_of(env, fact, step, a, b)
  if reason then return 'r', reason, ZERO_KEY, 0, '' end
  local kept, lost = a, b
  -- The larger side keeps its root, so an identity moves at most ten times before its person has a thousand members.
  if b.size > a.size or b.size == a.size and is_less(b.root, a.root) then kept, lost = b, a end
  env.components[step.a], env.components[step.b] = kept, kept
  return 'l', '-', kept.root, join(env, kept, lost)
end

local function decide(env, fact, step)
  local outcome, reason, root, moved, members = decide_outcome(env, fact, step)
  return step.link .. step.a_kind .. step.b_kind .. outcome .. reason .. step.a .. step.b .. root
    .. pack_bytes('>I2', moved) .. members
end

-- Creates each table with a constructor; adding fields one at a time would reallocate the table four times.
local function read_step(at)
  local link, a_kind, b_kind, blocked, a, b, others, others_at = unpack_bytes('>c1c1c1Bc16c16B', facts, at)
  local others_end = others == OTHER_KEYS_OMITTED and others_at - 1 or others_at + others * 16 - 1
  return {
    link = link, a_kind = a_kind, b_kind = b_kind, a = a, b = b, blocked = blocked == 1,
    may_need_other_keys = others == OTHER_KEYS_OMITTED, others = others_at, others_end = others_end,
  }, others_end + 1
end

local function read_named(start)
  local count, at = unpack_bytes('>I2', facts, start)
  local keys, kinds = {}, {}
  for index = 1, count do kinds[index], keys[index], at = unpack_bytes('>c1c16', facts, at) end
  return keys, kinds, at
end

local function read_fact(start)
  local offset, received_at, event_time, environment, count, at = unpack_bytes('>I6I6I6BB', facts, start)
  local steps, unlink_keys, kinds, logged = {}, nil, nil, nil
  if count == IS_LOGGED then logged, count, at = unpack_bytes('>I4c0B', facts, at) end
  if count == IS_UNLINK then
    unlink_keys, kinds, at = read_named(at)
  else
    for step = 1, count do steps[step], at = read_step(at) end
  end
  return {
    unlink = unlink_keys, unlink_kinds = kinds, offset = offset, received_at = received_at, received_at_bytes = sub(facts, start + 6, start + 11),
    event_time = event_time, env = environments[environment], steps = steps, logged = logged,
  }, at
end

-- Whether the omitted keys are needed because the untyped id's person has an id of another type.
local function needs_other_keys(env, fact)
  local step = fact.steps[1]
  if not step or not step.may_need_other_keys then return false end
  local b = component_of(env, step.b)
  if not b then return is_erased_root(env, step.b) end
  if b == component_of(env, step.a) then return false end
  return bit.band(b.kinds, bit.bnot(KIND_BITS.a + KIND_BITS.u + KIND_BITS[step.a_kind])) ~= 0
end

-- Decides all steps after the first `done` steps.
local function apply(env, fact, done)
  if fact.unlink then return unlink(env, fact) end
  if #fact.steps == 1 then return decide(env, fact, fact.steps[1]) end
  local entries = {}
  for at = done + 1, #fact.steps do entries[#entries + 1] = decide(env, fact, fact.steps[at]) end
  return concat(entries)
end

-- Reads recorded entries by offset, from all outbox records that overlap this call.
local function read_recorded(env, list)
  local recorded = {}
  local prefix = source .. '/'
  for _, field in ipairs(call('HKEYS', env.outbox)) do
    local first, last = string.match(field, '(%d+)%-(%d+)$', #prefix + 1)
    local is_wanted = sub(field, 1, #prefix) == prefix and tonumber(first) <= list[#list].offset
    if is_wanted and tonumber(last) >= list[1].offset then
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

local function read_facts()
  local list, at = {}, 1
  while at <= #facts do list[#list + 1], at = read_fact(at) end
  return list
end

-- After a rebuild, facts after the linkers' commit are redelivered. Decided facts are already part of the rebuilt graph
-- and must not be decided twice. Undecided facts before the last decided fact were parked, so they are parked again.
local function state_of(env, fact)
  if not env.last_rebuilt then return 'new' end
  local last_generation, last_offset = unpack_bytes('>I1I6', env.last_rebuilt)
  if generation > last_generation or generation == last_generation and fact.offset > last_offset then return 'new' end
  local field, byte_at, value = bit_of(generation, fact.offset)
  return is_bit_set(call('HGET', env.rebuilt, field), byte_at, value) and 'decided' or 'parked'
end

-- Root of the person whose hold delays a parked fact. Not recorded because the root may change.
local function person_of(env, fact)
  local first = named_by(fact)[1]
  local component = component_of(env, first)
  return parked_by(env, fact) or component and component.root or first
end

-- Entry for a fact that has not been applied yet.
local function entry_of(env, fact)
  local state = state_of(env, fact)
  if state == 'decided' then return '' end
  local logged = fact.logged ~= PARKED and fact.logged or ''
  local done = apply_logged(env, fact, logged)
  -- An unlink is decided as a whole.
  if done > 0 and done >= #fact.steps then return logged end
  if state == 'parked' or fact.logged == PARKED or parked_by(env, fact) then return PARKED end
  return logged .. apply(env, fact, done)
end

for index = FIRST_ENVIRONMENT, #ARGV do environments[index - FIRST_ENVIRONMENT] = load_environment(ARGV[index]) end
local list, reply, last = read_facts(), {}, -1
read_named_cutoffs(list)
for at, fact in ipairs(list) do
  local env, entry = fact.env, ''
  if fact.offset <= applied then
    env.recorded = env.recorded or read_recorded(env, list)
    entry = env.recorded[fact.offset] or ''
  elseif not fact.logged and needs_other_keys(env, fact) or at > 1 and fields_read > FIELDS_READ_MAX then
    through = last
    break
  elseif fact.unlink or #fact.steps > 0 then
    entry = entry_of(env, fact)
  end
  if fact.offset > applied then record(env, fact.offset, pack_bytes('>I6I4', fact.offset, #entry) .. entry) end
  if entry == PARKED then entry = PARKED .. person_of(env, fact) end
  last = fact.offset
  reply[#reply + 1] = pack_bytes('>I6I4', fact.offset, #entry) .. entry
end
for _, env in pairs(environments) do write(env) end
if through > applied then call('HSET', KEYS[2], source, string.format('%.0f', through)) end
return concat(reply)
