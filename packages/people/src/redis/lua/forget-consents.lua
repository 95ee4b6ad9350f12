-- Erasure: forgets consents, each only while it is still the one that was judged.
-- KEYS  the bucket of each
-- ARGV  identity key and value (index.ts) in turn
-- Reply how many were forgotten
local forgotten = 0
for at, bucket in ipairs(KEYS) do
  local key, value = ARGV[2 * at - 1], ARGV[2 * at]
  if redis.call('HGET', bucket, key) == value then forgotten = forgotten + redis.call('HDEL', bucket, key) end
end
return forgotten
