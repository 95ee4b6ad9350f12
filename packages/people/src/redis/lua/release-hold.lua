-- Takes a hold away; each of its keys falls back to the latest cut-off of the holds that are left, or is free.
-- ARGV  erasure id, now in ms when only a lapsed hold is meant, else ''
-- Reply 1 when a hold was taken away, else 0
local lease = redis.call('HGET', LEASES, ARGV[1])
if not lease then return 0 end
local _, lapses_at = struct.unpack('>I6I6', lease)
if ARGV[2] ~= '' and (lapses_at == 0 or lapses_at > tonumber(ARGV[2])) then return 0 end
redis.call('HDEL', LEASES, ARGV[1])
remove_holders(ARGV[1], lease)
each_key(lease, tell_graph)
return 1
