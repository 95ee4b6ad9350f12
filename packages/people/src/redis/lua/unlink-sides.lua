-- Unlink sides of identities. Shared by several scripts. A stored side is the unlink's position (generation, offset)
-- and time, then the side. layout.ts describes the hash.
local SIDE_BYTES, POSITION_BYTES = 14, 7
local SPLIT, STAYED, NONE = 's', 't', 'n'
-- Cannot collide with an identity key, which is longer.
local LATEST = 'latest'

-- Time of the environment's latest unlink, or -1.
local function latest_unlink(name) return tonumber(redis.call('HGET', name, LATEST) or -1) end

local function raise_latest(name, time)
  if time > latest_unlink(name) then redis.call('HSET', name, LATEST, string.format('%.0f', time)) end
end

-- Adds a side, unless the unlink's side is already stored.
local function add_side(name, key, side)
  local sides = redis.call('HGET', name, key) or ''
  for at = 1, #sides, SIDE_BYTES do
    if string.sub(sides, at, at + POSITION_BYTES - 1) == string.sub(side, 1, POSITION_BYTES) then return end
  end
  redis.call('HSET', name, key, sides .. side)
end
