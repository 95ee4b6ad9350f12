-- Removes a hold. Each of its keys then has the latest cut-off of the remaining holds, or none.
-- ARGV  erasure id, now in ms to remove a lapsed hold only, else ''
-- Reply 1 when a hold was removed, else 0
local lease = redis.call('HGET', LEASES, ARGV[1])
if not lease then return 0 end
local _, lapses_at = struct.unpack('>I6I6', lease)
if ARGV[2] ~= '' and (lapses_at == 0 or lapses_at > tonumber(ARGV[2])) then return 0 end
redis.call('HDEL', LEASES, ARGV[1])
remove_holders(ARGV[1], lease)
each_key(lease, update_cutoff)
return 1
