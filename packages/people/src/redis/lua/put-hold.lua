-- Creates or replaces an erasure's hold and updates the cut-offs that the identity graph reads.
-- ARGV  erasure id, lease, 'extend' to replace only an existing hold, else ''
-- Reply 1 if the hold was stored, else 0
local id, lease = ARGV[1], ARGV[2]
local known = redis.call('HGET', LEASES, id)
if ARGV[3] == 'extend' and not known then return 0 end
if known then remove_holders(id, known) end
redis.call('HSET', LEASES, id, lease)
add_holders(id, lease)
each_key(lease, update_cutoff)
if known then each_key(known, update_cutoff) end
return 1
