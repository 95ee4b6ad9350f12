#!lua
-- Puts a hold and raises the cut-offs that the identity graph reads, in one step.
-- KEYS  leases, holds
-- ARGV  erasure id, lease (wire.ts), cut-off as text, keys
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
for at = 4, #ARGV do
  local known = tonumber(redis.call('HGET', KEYS[2], ARGV[at]) or nil)
  if not known or known < tonumber(ARGV[3]) then redis.call('HSET', KEYS[2], ARGV[at], ARGV[3]) end
end
return 1
