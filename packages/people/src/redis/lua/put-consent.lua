-- Applies a consent change, unless the stored position is equal or later or a fence refuses the change. Redis runs a
-- script atomically, so the later of two concurrent changes wins.
-- KEYS  epoch, consent bucket, fence bucket, consent log
-- ARGV  identity key, value (index.ts), 'epoch' to require an epoch and advance the offset, or '' in a rebuild
-- Reply 'a' applied, 's' superseded, 'f' fenced
if ARGV[3] == 'epoch' and redis.call('EXISTS', KEYS[1]) == 0 then
  return redis.error_reply(NO_EPOCH)
end
local _, partition, offset, logged_at, received_at = struct.unpack('>c1I2I6I6I6', ARGV[2])
-- The offset is stored with the data, so a data loss affects both. After a restart, the offset must not advance until
-- catch-up has restored lost changes.
if ARGV[3] == 'epoch' and redis.call('HGET', KEYS[4], 'run') == present_run() then
  local applied = tonumber(redis.call('HGET', KEYS[4], partition) or -1)
  if offset > applied then redis.call('HSET', KEYS[4], partition, string.format('%.0f', offset)) end
end
local cutoff = tonumber(redis.call('HGET', KEYS[3], ARGV[1]) or nil)
if cutoff and received_at <= cutoff then return 'f' end
local stored = redis.call('HGET', KEYS[2], ARGV[1])
if stored then
  local _, stored_partition, stored_offset, stored_at = struct.unpack('>c1I2I6I6', stored)
  local later = partition > stored_partition
  if logged_at ~= stored_at then later = logged_at > stored_at end
  if partition == stored_partition then later = offset > stored_offset end
  if not later then return 's' end
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return 'a'
