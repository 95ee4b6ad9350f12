-- Functions shared by the scripts that change holds.
-- KEYS  leases, holders, holds
-- ARGV  erasure id, …
-- A lease is cut-off, expiry (0: never) and keys (index.ts). A holder is identity key, cut-off and erasure id, so the
-- last holder of a key has the latest cut-off.
local LEASES, HOLDERS, HOLDS = KEYS[1], KEYS[2], KEYS[3]
local FIRST_KEY, CUTOFF_BYTES = 13, 6
local AFTER_ALL = string.rep('\255', CUTOFF_BYTES + KEY_BYTES + 1)

local function each_key(lease, visit)
  for at = FIRST_KEY, #lease, KEY_BYTES do visit(string.sub(lease, at, at + KEY_BYTES - 1)) end
end

local function add_holders(id, lease)
  local cutoff = string.sub(lease, 1, CUTOFF_BYTES)
  each_key(lease, function(key) redis.call('ZADD', HOLDERS, 0, key .. cutoff .. id) end)
end

local function remove_holders(id, lease)
  local cutoff = string.sub(lease, 1, CUTOFF_BYTES)
  each_key(lease, function(key) redis.call('ZREM', HOLDERS, key .. cutoff .. id) end)
end

-- Updates the cut-off that the identity graph reads: the latest among the key's holds.
local function update_cutoff(key)
  local last = redis.call('ZREVRANGEBYLEX', HOLDERS, '[' .. key .. AFTER_ALL, '[' .. key, 'LIMIT', 0, 1)[1]
  if not last then return redis.call('HDEL', HOLDS, key) end
  redis.call('HSET', HOLDS, key, string.format('%.0f', (struct.unpack('>I6', last, KEY_BYTES + 1))))
end
