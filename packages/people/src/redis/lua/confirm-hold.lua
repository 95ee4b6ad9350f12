-- Confirms a hold, if it exists, so that it does not expire.
-- ARGV  erasure id
-- Reply 1 when the hold exists, else 0
local lease = redis.call('HGET', LEASES, ARGV[1])
if not lease then return 0 end
local cutoff = struct.unpack('>I6', lease)
redis.call('HSET', LEASES, ARGV[1], struct.pack('>I6I6', cutoff, 0) .. string.sub(lease, FIRST_KEY))
return 1
