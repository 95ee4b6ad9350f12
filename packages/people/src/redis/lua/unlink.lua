-- Splits persons and stores the sides of each unlink. Included after components.lua.

-- Sides of a component's members in all unlinks not earlier than `time`: a bitmap per unlink position.
local function sides_of(env, component, time)
  local sides, is_empty = {}, true
  read_fields(env.unlinks, keys_of(component), function(_, text)
    for at = 1, text and #text or 0, SIDE_BYTES do
      local position, unlinked_at, side = unpack_bytes('>c7I6c1', text, at)
      if time <= unlinked_at then
        sides[position] = bit.bor(sides[position] or 0, side == SPLIT and 1 or 2)
        is_empty = false
      end
    end
  end)
  return sides, is_empty
end

-- Whether an unlink not earlier than the fact separated a member of `a` from a member of `b`.
local function are_separated(env, fact, a, b)
  local time = min(fact.received_at, fact.event_time)
  if time > env.latest_unlink then return false end
  local of_a, is_empty = sides_of(env, a, time)
  if is_empty then return false end
  local of_b = sides_of(env, b, time)
  for position, side in pairs(of_a) do
    if of_b[position] and bit.bor(side, of_b[position]) == 3 then return true end
  end
  return false
end

-- A parked unlink may be in the log twice. The copy has the same timestamp and must not undo newer links.
local function is_copy(env, fact)
  local sides = call('HGET', env.unlinks, fact.unlink[1]) or ''
  for at = 1, #sides, SIDE_BYTES do
    local unlinked_at, side = unpack_bytes('>I6c1', sides, at + POSITION_BYTES)
    if side ~= STAYED and unlinked_at == fact.received_at then return true end
  end
  return false
end

-- Returns a new component with the members for which `is_selected` returns true.
local function extract_side(component, is_selected)
  local side = {
    size = 0, kinds = 0, anonymous_ids = 0, is_new = false, merged_into = false, held_from = UNKNOWN,
    must_rewrite = true, parts = {},
  }
  for _, part in ipairs(component.parts) do
    local members = {}
    for at = 1, #part.blob, MEMBER_BYTES do
      local key, kind = unpack_bytes('>c16c1', part.blob, at)
      if is_selected(key) then
        members[#members + 1] = sub(part.blob, at, at + MEMBER_BYTES - 1)
        side.kinds = bit.bor(side.kinds, KIND_BITS[kind])
        if kind == 'a' then side.anonymous_ids = side.anonymous_ids + 1 end
        if not side.first or is_less(key, side.first) then side.first, side.first_kind = key, kind end
      end
    end
    side.size = side.size + #members
    if #members > 0 then side.parts[#side.parts + 1] = { blob = concat(members), root = part.root } end
  end
  return side
end

-- Stores a side, except for erased identities, whose fences already refuse the affected facts.
local function save_side(env, fact, key, side)
  if is_fenced(env, key, fact) then return end
  add_side(env.unlinks, key, pack_bytes('>I1I6I6c1', generation, fact.offset, fact.received_at, side))
end

local function store_side(env, fact, component, side)
  env.changed[component] = true
  for _, key in ipairs(keys_of(component)) do
    env.components[key] = component
    save_side(env, fact, key, side)
  end
end

-- The side that contains the root keeps it. If the root was erased, the remaining side keeps it.
local function split(env, fact, component, is_named)
  local leaving = extract_side(component, function(key) return is_named[key] end)
  local stayed = extract_side(component, function(key) return not is_named[key] end)
  local root_side = is_named[component.root] and leaving or stayed
  leaving.root, stayed.root = leaving.first, stayed.first
  root_side.root = component.root
  env.changed[component] = nil
  env.stored[component.root] = root_side
  store_side(env, fact, leaving, SPLIT)
  store_side(env, fact, stayed, STAYED)
  return leaving, stayed
end

local function blob_of(side)
  local blobs = {}
  for at, part in ipairs(side.parts) do blobs[at] = part.blob end
  return pack_bytes('>I2', side.size) .. concat(blobs)
end

-- Like a link entry, followed by the root, number and members of the side that stays.
local function unlink_entry(fact, outcome, other, roots)
  local first = fact.unlink[1]
  return 'x' .. fact.unlink_kinds[1] .. other.kind .. outcome .. first .. other.key .. roots
end

-- Returns outcome and reason, index of the affected identity, and root if the person cannot be split, otherwise nil.
local function refusal_of_unlink(env, fact, component)
  local first, size, seen = fact.unlink[1], 0, {}
  for _, key in ipairs(fact.unlink) do
    if is_fenced(env, key, fact) then return 'rf', 1, ZERO_KEY end
  end
  local root = component and component.root or first
  if is_copy(env, fact) then return 'n-', 1, root end
  for at, key in ipairs(fact.unlink) do
    local is_stranger = component_of(env, key) ~= component or not component and key ~= first
    if is_stranger then return 'ro', at, ZERO_KEY end
    if not seen[key] then seen[key], size = true, size + 1 end
  end
  if not component or component.size == size then return 'n-', 1, root end
  return nil, nil, nil, seen
end

-- Also stores unlinks without effect; otherwise a copy of the unlink would undo newer links.
local function unlink(env, fact)
  local first, no_members = fact.unlink[1], pack_bytes('>I2', 0)
  local component = component_of(env, first)
  local outcome, cause, root, is_named = refusal_of_unlink(env, fact, component)
  raise_latest(env.unlinks, fact.received_at)
  env.latest_unlink = latest_unlink(env.unlinks)
  if outcome then
    save_side(env, fact, first, NONE)
    local other = { key = fact.unlink[cause], kind = fact.unlink_kinds[cause] }
    return unlink_entry(fact, outcome, other, root .. no_members .. ZERO_KEY .. no_members)
  end
  local leaving, stayed = split(env, fact, component, is_named)
  local other = { key = stayed.first, kind = stayed.first_kind }
  return unlink_entry(fact, 'x-', other, leaving.root .. blob_of(leaving) .. stayed.root .. blob_of(stayed))
end
