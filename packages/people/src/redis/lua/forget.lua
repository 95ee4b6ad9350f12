-- Erasure: removes identities of one environment from their components.
-- KEYS  epoch, leases
-- ARGV  namespace, environment, erasure id, then the identity keys
-- Reply the number of removed identities
if redis.call('EXISTS', KEYS[1]) == 0 then return redis.error_reply(NO_EPOCH) end
if redis.call('HEXISTS', KEYS[2], ARGV[3]) == 0 then return redis.error_reply('NOHOLD the erasure has no hold') end
local keys = {}
for at = 4, #ARGV do keys[#keys + 1] = ARGV[at] end
local count = remove_identities(ARGV[1], ARGV[2], keys, function() return true end)
local unlinks = name_of(ARGV[1], FAMILY.unlinks, ARGV[2])
-- Unlink sides are no longer needed: the fences already refuse all facts that the sides would refuse.
local suspects = name_of(ARGV[1], FAMILY.suspects, ARGV[2])
for _, key in ipairs(keys) do
  redis.call('HDEL', unlinks, key)
  drop_suspect(suspects, key, math.huge)
end
return count
