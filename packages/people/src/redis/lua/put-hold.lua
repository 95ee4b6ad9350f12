-- Replaces the hold of this erasure and updates what the identity graph reads, in one step.
-- ARGV  erasure id, lease, 'extend' to replace an existing hold only, else ''
-- Reply 1 when the hold was stored, else 0
local id, lease = ARGV[1], ARGV[2]
local known = redis.call('HGET', LEASES, id)
if ARGV[3] == 'extend' and not known then return 0 end
if known then remove_holders(id, known) end
redis.call('HSET', LEASES, id, lease)
add_holders(id, lease)
each_key(lease, update_cutoff)
if known then each_key(known, update_cutoff) end
return 1
