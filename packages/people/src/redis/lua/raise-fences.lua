-- Sets fences of one environment, unless a later fence exists.
-- KEYS  run in which all fences were set; selects the node
-- ARGV  namespace, environment, then alternating identity keys and cut-offs
-- The bucket's bit is set first: a fence in an unmarked bucket would never be read.
local map = name_of(ARGV[1], FAMILY.fences, ARGV[2])
for at = 3, #ARGV, 2 do
  local key, cutoff = ARGV[at], ARGV[at + 1]
  local bucket = bucket_of(key)
  local fences = map .. ':' .. bucket
  redis.call('SETBIT', map, bucket, 1)
  local known = tonumber(redis.call('HGET', fences, key) or 0)
  if tonumber(cutoff) > known then redis.call('HSET', fences, key, cutoff) end
end
return 0
