-- Rebuild: restores unlink sides.
-- KEYS  epoch
-- ARGV  namespace, then one blob per row: environment, identity key, side (wire.ts)
if redis.call('EXISTS', KEYS[1]) == 1 then return redis.error_reply('EPOCH an epoch is set') end
for at = 2, #ARGV do
  local environment, key, side = struct.unpack('>Bc0c16c14', ARGV[at])
  local name = name_of(ARGV[1], FAMILY.unlinks, environment)
  add_side(name, key, side)
  raise_latest(name, (struct.unpack('>I6', side, POSITION_BYTES + 1)))
end
return #ARGV - 1
