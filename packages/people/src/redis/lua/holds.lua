-- Shared functions for changes of holds. The scripts of holds follow this file.
-- KEYS  leases, holders, holds, leases as they were kept before
-- ARGV  erasure id, …
-- A lease: cut-off, time from which it lapses (0: it stands), keys (hold-wire.ts). A holder: identity key, cut-off,
-- erasure id, so the holders of a key are neighbours, and the last one has the latest cut-off.
local LEASES, HOLDERS, HOLDS, FORMER = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FIRST_KEY, CUTOFF_BYTES = 13, 6
local BEHIND_ALL = string.rep('\255', CUTOFF_BYTES + KEY_BYTES + 1)

local function each_key(lease, act)
  for at = FIRST_KEY, #lease, KEY_BYTES do act(string.sub(lease, at, at + KEY_BYTES - 1)) end
end

local function add_holders(id, lease)
  local cutoff = string.sub(lease, 1, CUTOFF_BYTES)
  each_key(lease, function(key) redis.call('ZADD', HOLDERS, 0, key .. cutoff .. id) end)
end

local function remove_holders(id, lease)
  local cutoff = string.sub(lease, 1, CUTOFF_BYTES)
  each_key(lease, function(key) redis.call('ZREM', HOLDERS, key .. cutoff .. id) end)
end

-- Writes what the identity graph reads: the latest cut-off of the holds on the key, or nothing.
local function tell_graph(key)
  local last = redis.call('ZREVRANGEBYLEX', HOLDERS, '[' .. key .. BEHIND_ALL, '[' .. key, 'LIMIT', 0, 1)[1]
  if not last then return redis.call('HDEL', HOLDS, key) end
  redis.call('HSET', HOLDS, key, string.format('%.0f', (struct.unpack('>I6', last, KEY_BYTES + 1))))
end

-- Moves the leases of an earlier release, which kept them in a hash without holders. A text takes the place of the
-- hash, so a gateway of that release refuses erasures: it would release holds of others.
local function take_over()
  local kind = redis.call('TYPE', FORMER).ok
  if kind == 'string' then return end
  local former = kind == 'hash' and redis.call('HGETALL', FORMER) or {}
  redis.call('SET', FORMER, 'moved')
  if #former > 0 then redis.call('DEL', HOLDS) end
  for at = 1, #former, 2 do
    redis.call('HSET', LEASES, former[at], former[at + 1])
    add_holders(former[at], former[at + 1])
  end
  for at = 2, #former, 2 do each_key(former[at], tell_graph) end
end

take_over()
