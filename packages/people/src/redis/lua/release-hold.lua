-- Removes a hold and updates the cut-offs of its keys.
-- ARGV  erasure id, current time in ms to remove only an expired hold, else ''
-- Reply 1 if a hold was removed, else 0
local lease = redis.call('HGET', LEASES, ARGV[1])
if not lease then return 0 end
local _, lapses_at = struct.unpack('>I6I6', lease)
if ARGV[2] ~= '' and (lapses_at == 0 or lapses_at > tonumber(ARGV[2])) then return 0 end
redis.call('HDEL', LEASES, ARGV[1])
remove_holders(ARGV[1], lease)
each_key(lease, update_cutoff)
return 1
