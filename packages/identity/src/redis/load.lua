#!lua
-- Rebuild: puts identities under their roots, later rows over earlier ones; a known identity keeps its link time.
-- KEYS  epoch
-- ARGV  namespace, then a blob a row: environment, identity key, root, kind and link time (wire.ts)
if redis.call('EXISTS', KEYS[1]) == 1 then return redis.error_reply('EPOCH the identity graph is in use') end
local namespace = ARGV[1]
for at = 2, #ARGV do
  local environment, key, root, member = struct.unpack('>Bc0c16c16c7', ARGV[at])
  local index = namespace .. 'i:{' .. environment .. '}:' .. math.floor(struct.unpack('>I2', key) / 4)
  local members = namespace .. 'm:{' .. environment .. '}:'
  local known = redis.call('HGET', index, key)
  if known ~= root then
    if known then
      member = redis.call('HGET', members .. known, key) or member
      redis.call('HDEL', members .. known, key)
    end
    redis.call('HSET', index, key, root)
    redis.call('HSET', members .. root, key, member)
  end
end
return #ARGV - 1
