-- Erasure: deletes consents that are unchanged since they were read.
-- KEYS  the bucket of each consent
-- ARGV  alternating identity keys and values (index.ts)
-- Reply the number of deleted consents
local forgotten = 0
for at, bucket in ipairs(KEYS) do
  local key, value = ARGV[2 * at - 1], ARGV[2 * at]
  if redis.call('HGET', bucket, key) == value then forgotten = forgotten + redis.call('HDEL', bucket, key) end
end
return forgotten
