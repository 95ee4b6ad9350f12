-- On which side of each unlink an identity stood, and what is known of all unlinks of an environment; before the scripts that
-- need it. A side is place (generation, offset) and time of the unlink, then a letter; layout.ts describes the hash.
local SIDE_BYTES, PLACE_BYTES = 14, 7
local SPLIT, STAYED, NONE = 's', 't', 'n'
-- No identity key is so short.
local LAST = 'last'

-- Latest place and latest time of the unlinks of an environment; false where there was none.
local function last_unlink(name)
  local last = redis.call('HGET', name, LAST)
  if not last then return false end
  local generation, offset, time = struct.unpack('>I1I6I6', last)
  return { name = name, generation = generation, offset = offset, time = time }
end

local function raise_last(name, generation, offset, time)
  local last = last_unlink(name) or { generation = -1, offset = -1, time = 0 }
  local is_later = generation > last.generation or generation == last.generation and offset > last.offset
  if not is_later then generation, offset = last.generation, last.offset end
  redis.call('HSET', name, LAST, struct.pack('>I1I6I6', generation, offset, math.max(time, last.time)))
end

-- The same side again changes nothing.
local function add_side(name, key, side)
  local sides = redis.call('HGET', name, key) or ''
  for at = 1, #sides, SIDE_BYTES do
    if string.sub(sides, at, at + PLACE_BYTES - 1) == string.sub(side, 1, PLACE_BYTES) then return end
  end
  redis.call('HSET', name, key, sides .. side)
end
