-- Which facts behind the linkers' commit were decided before a rebuild; before the scripts that need it. A bit an offset, in
-- blocks; layout.ts describes the hash.
local BLOCK_OFFSETS = 1024
-- No block has so long a name.
local LAST_DECIDED = 'last'

-- Field of the block, place of the byte in it and value of the bit.
local function bit_of(generation, offset)
  local at = offset % BLOCK_OFFSETS
  return struct.pack('>I1I6', generation, math.floor(offset / BLOCK_OFFSETS)), math.floor(at / 8) + 1, 2 ^ (at % 8)
end

local function is_bit_set(block, at, value)
  return block and math.floor(string.byte(block, at) / value) % 2 == 1
end
