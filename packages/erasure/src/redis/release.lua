#!lua
-- Takes a hold away; each of its keys falls back to the latest cut-off of the holds that are left, or is free.
-- KEYS  leases, holds
-- ARGV  erasure id, now in ms when only a lapsed hold is meant, else ''
-- Reply 1 when a hold was taken away, else 0
local lease = redis.call('HGET', KEYS[1], ARGV[1])
if not lease then return 0 end
local _, lapses_at = struct.unpack('>I6I6', lease)
if ARGV[2] ~= '' and (lapses_at == 0 or lapses_at > tonumber(ARGV[2])) then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])

local FIRST_KEY, KEY_BYTES = 13, 16
local cutoffs = {}
for _, other in ipairs(redis.call('HVALS', KEYS[1])) do
  local cutoff = struct.unpack('>I6', other)
  for at = FIRST_KEY, #other, KEY_BYTES do
    local key = string.sub(other, at, at + KEY_BYTES - 1)
    if not cutoffs[key] or cutoffs[key] < cutoff then cutoffs[key] = cutoff end
  end
end
for at = FIRST_KEY, #lease, KEY_BYTES do
  local key = string.sub(lease, at, at + KEY_BYTES - 1)
  if cutoffs[key] then
    redis.call('HSET', KEYS[2], key, string.format('%.0f', cutoffs[key]))
  else
    redis.call('HDEL', KEYS[2], key)
  end
end
return 1
