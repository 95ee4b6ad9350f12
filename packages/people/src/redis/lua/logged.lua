-- Applies logged decisions to a graph that has lost them. The facts are not decided a second time because holds,
-- fences and limits may have changed and the tables contain the logged decisions. Included after unlink.lua.
local PARKED = 'P'

-- Whether a fence covers a link, as in a rebuild.
local function is_erased(env, key, linked_at)
  return is_fenced(env, key, { received_at = linked_at, event_time = linked_at })
end

-- Returns the component with this root, or a new, empty component.
local function component_at(env, root)
  local component = component_of(env, root)
  if component and component.root == root then return component end
  component = env.stored[root]
  if component and not component.merged_into then return component end
  if not component and call('EXISTS', env.members .. root) == 1 then return load_component(env, root) end
  component = {
    root = root, size = 0, kinds = 0, anonymous_ids = 0, is_new = false, merged_into = false, held_from = UNKNOWN,
    must_rewrite = true, parts = {},
  }
  env.stored[root] = component
  return component
end

-- Removes members from a component. The remaining members keep their root.
local function remove_members(env, component, is_moved, target)
  local rest = extract_side(component, function(key) return not is_moved[key] end)
  env.changed[component] = nil
  if rest.size == 0 then
    component.merged_into = target
    return
  end
  rest.root = component.root
  if env.stored[component.root] == component then env.stored[component.root] = rest end
  env.changed[rest] = true
  for _, key in ipairs(keys_of(rest)) do env.components[key] = rest end
end

-- Moves identities from their current components to a root.
local function move_to_root(env, members, root)
  local moved, is_moved, sources, anonymous_ids, kinds = {}, {}, {}, 0, 0
  for at = 1, #members, MEMBER_BYTES do
    local key, kind, linked_at = unpack_bytes('>c16c1I6', members, at)
    local component = component_of(env, key)
    if not (component and component.root == root) and not is_erased(env, key, linked_at) then
      moved[#moved + 1] = sub(members, at, at + MEMBER_BYTES - 1)
      is_moved[key] = true
      if component then sources[component] = true end
      kinds = bit.bor(kinds, KIND_BITS[kind])
      if kind == 'a' then anonymous_ids = anonymous_ids + 1 end
    end
  end
  if #moved == 0 then return end
  local target = component_at(env, root)
  for component in pairs(sources) do remove_members(env, component, is_moved, target) end
  for key in pairs(is_moved) do env.components[key] = target end
  target.parts[#target.parts + 1] = { blob = concat(moved), root = false }
  target.size = target.size + #moved
  target.kinds = bit.bor(target.kinds, kinds)
  target.anonymous_ids = target.anonymous_ids + anonymous_ids
  target.held_from, target.is_new = UNKNOWN, false
  env.changed[target] = true
end

local function save_sides(env, fact, members, side)
  for at = 1, #members, MEMBER_BYTES do save_side(env, fact, sub(members, at, at + 15), side) end
end

local function read_members(entry, start)
  local count, at = unpack_bytes('>I2', entry, start)
  local last = at + count * MEMBER_BYTES - 1
  return sub(entry, at, last), last + 1
end

-- Applies the entries of a fact's first steps and returns the number of steps.
local function apply_logged(env, fact, entries)
  local at, steps = 1, 0
  while at <= #entries do
    local link, a_kind, b_kind, outcome, reason, a, b, root, next = unpack_bytes('>c1c1c1c1c1c16c16c16', entries, at)
    local members, stayed_root, stayed
    members, at = read_members(entries, next)
    if link == 'x' then
      stayed_root, at = unpack_bytes('>c16', entries, at)
      stayed, at = read_members(entries, at)
      raise_latest(env.unlinks, fact.received_at)
      env.latest_unlink = latest_unlink(env.unlinks)
      save_sides(env, fact, members, SPLIT)
      save_sides(env, fact, stayed, STAYED)
      if outcome ~= 'x' then save_side(env, fact, a, NONE) end
      move_to_root(env, stayed, stayed_root)
    elseif link == ALLOWED or link == BLOCKED then
      mark_suspect(env, fact, a, link)
    elseif reason ~= 'b' and reason ~= 'f' then
      if not is_fenced(env, a, fact) then rejoin(env, a, a_kind, fact) end
      if not is_fenced(env, b, fact) then rejoin(env, b, b_kind, fact) end
      local linked_id = b_kind == 'a' and a_kind ~= 'a' and a or b
      if reason == HELD and not is_fenced(env, linked_id, fact) then mark_suspect(env, fact, linked_id, HELD) end
    end
    move_to_root(env, members, root)
    steps = steps + 1
  end
  return steps
end
