-- Removes the expiry of a hold.
-- ARGV  erasure id
-- Reply 1, or 0 if there is no hold
local lease = redis.call('HGET', LEASES, ARGV[1])
if not lease then return 0 end
local cutoff = struct.unpack('>I6', lease)
redis.call('HSET', LEASES, ARGV[1], struct.pack('>I6I6', cutoff, 0) .. string.sub(lease, FIRST_KEY))
return 1
