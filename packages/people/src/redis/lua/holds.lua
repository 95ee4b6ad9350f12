-- Shared functions for hold changes, prepended to the hold scripts.
-- KEYS  leases, holders, holds
-- ARGV  erasure id, …
-- A lease: cut-off, time from which it lapses (0: never), keys (index.ts). A holder: identity key, cut-off,
-- erasure id, so the holders of a key are neighbours, and the last holder has the latest cut-off.
local LEASES, HOLDERS, HOLDS = KEYS[1], KEYS[2], KEYS[3]
local FIRST_KEY, CUTOFF_BYTES = 13, 6
local AFTER_ALL = string.rep('\255', CUTOFF_BYTES + KEY_BYTES + 1)

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
local function update_cutoff(key)
  local last = redis.call('ZREVRANGEBYLEX', HOLDERS, '[' .. key .. AFTER_ALL, '[' .. key, 'LIMIT', 0, 1)[1]
  if not last then return redis.call('HDEL', HOLDS, key) end
  redis.call('HSET', HOLDS, key, string.format('%.0f', (struct.unpack('>I6', last, KEY_BYTES + 1))))
end
