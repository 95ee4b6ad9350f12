-- Erasure: forgets consents, each only if it is unchanged since it was read.
-- KEYS  the bucket of each consent
-- ARGV  alternating identity keys and values (index.ts)
-- Reply how many consents were forgotten
local forgotten = 0
for at, bucket in ipairs(KEYS) do
  local key, value = ARGV[2 * at - 1], ARGV[2 * at]
  if redis.call('HGET', bucket, key) == value then forgotten = forgotten + redis.call('HDEL', bucket, key) end
end
return forgotten
