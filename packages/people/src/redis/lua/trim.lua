-- Deletes recorded decisions of one partition up to an offset. Allowed when Redis is out of memory.
-- KEYS  progress; selects the node
-- ARGV  namespace, source, through, then the environments
-- An outbox record contains the decisions of one call. A record that spans the offset is truncated.
local namespace, source, through = ARGV[1], ARGV[2], tonumber(ARGV[3])
local prefix = source .. '/'

local function cut(value)
  local at = 1
  while at <= #value do
    local offset, length, entry_at = struct.unpack('>I6I4', value, at)
    if offset > through then break end
    at = entry_at + length
  end
  return string.sub(value, at)
end

local function trim(outbox, field)
  if string.sub(field, 1, #prefix) ~= prefix then return end
  local first, last = string.match(field, '(%d+)%-(%d+)$', #prefix + 1)
  if tonumber(first) > through then return end
  local value = tonumber(last) > through and redis.call('HGET', outbox, field)
  redis.call('HDEL', outbox, field)
  if not value then return end
  redis.call('HSET', outbox, prefix .. string.format('%.0f', through + 1) .. '-' .. last, cut(value))
end

for at = 4, #ARGV do
  local outbox = name_of(namespace, FAMILY.outbox, ARGV[at])
  for _, field in ipairs(redis.call('HKEYS', outbox)) do trim(outbox, field) end
end
return 0
