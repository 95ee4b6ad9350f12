-- Rebuild: restores suspects. The state set by the latest fact wins, regardless of row order.
-- KEYS  epoch
-- ARGV  namespace, then one blob per row: environment, identity key, value (wire.ts)
if redis.call('EXISTS', KEYS[1]) == 1 then return redis.error_reply('EPOCH an epoch is set') end
local function position_of(value) return struct.unpack('>I1I6', value, 8) end
for at = 2, #ARGV do
  local environment, key, value = struct.unpack('>Bc0c16c14', ARGV[at])
  local name = name_of(ARGV[1], FAMILY.suspects, environment)
  local generation, offset = position_of(value)
  local known = redis.call('HGET', name, key)
  local known_generation, known_offset = -1, -1
  if known then known_generation, known_offset = position_of(known) end
  if generation > known_generation or generation == known_generation and offset >= known_offset then
    redis.call('HSET', name, key, value)
  end
end
return #ARGV - 1
