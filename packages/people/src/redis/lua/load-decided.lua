-- Rebuild: records which facts were decided.
-- KEYS  epoch
-- ARGV  namespace, then one blob per row: environment, generation, offset (wire.ts)
if redis.call('EXISTS', KEYS[1]) == 1 then return redis.error_reply('EPOCH an epoch is set') end
for at = 2, #ARGV do
  local environment, generation, offset = struct.unpack('>Bc0I1I6', ARGV[at])
  local name = name_of(ARGV[1], FAMILY.decided, environment)
  local field, byte_at, value = bit_of(generation, offset)
  local block = redis.call('HGET', name, field) or string.rep('\0', BLOCK_OFFSETS / 8)
  if not is_bit_set(block, byte_at, value) then
    local changed = string.char(string.byte(block, byte_at) + value)
    redis.call('HSET', name, field, string.sub(block, 1, byte_at - 1) .. changed .. string.sub(block, byte_at + 1))
  end
  local last = redis.call('HGET', name, LAST_DECIDED)
  local last_generation, last_offset = struct.unpack('>I1I6', last or struct.pack('>I1I6', 0, 0))
  local is_later = generation > last_generation or generation == last_generation and offset > last_offset
  if not last or is_later then redis.call('HSET', name, LAST_DECIDED, struct.pack('>I1I6', generation, offset)) end
end
return #ARGV - 1
