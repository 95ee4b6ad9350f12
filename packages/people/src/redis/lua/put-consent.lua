-- Puts one change of a consent unless the same or a later place, or a fence, forbids it.
-- Redis runs this alone and whole, so of two changes that race the later place stays.
-- KEYS  epoch, bucket of consents, bucket of fences, standing to the log
-- ARGV  identity key, value (consent-wire.ts), received at in ms, 'epoch' when there must be one: not while it is rebuilt, which
--       says nothing about the log either
-- Reply 'a' applied, 's' superseded, 'f' fenced
if ARGV[4] == 'epoch' and redis.call('EXISTS', KEYS[1]) == 0 then
  return redis.error_reply(NO_EPOCH)
end
local _, partition, offset, logged_at = struct.unpack('>c1I2I6I6', ARGV[2])
-- The position goes with the data, so what loses the one loses the other. It stands still in a new run, until what the
-- one before may have lost is back: moved on before, it would say that it is.
if ARGV[4] == 'epoch' and redis.call('HGET', KEYS[4], 'run') == present_run() then
  local applied = tonumber(redis.call('HGET', KEYS[4], partition) or -1)
  if offset > applied then redis.call('HSET', KEYS[4], partition, string.format('%.0f', offset)) end
end
local cutoff = tonumber(redis.call('HGET', KEYS[3], ARGV[1]) or nil)
if cutoff and tonumber(ARGV[3]) <= cutoff then return 'f' end
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
