-- Bitmaps of the facts that were decided before a rebuild but after the linkers' commit. Shared by several scripts.
-- layout.ts describes the hash.
local BLOCK_OFFSETS = 1024
-- Cannot collide with a block field, which has a different length.
local LAST_DECIDED = 'last'

-- Returns the block's field, the byte position in the block, and the value of the bit.
local function bit_of(generation, offset)
  local at = offset % BLOCK_OFFSETS
  return struct.pack('>I1I6', generation, math.floor(offset / BLOCK_OFFSETS)), math.floor(at / 8) + 1, 2 ^ (at % 8)
end

local function is_bit_set(block, at, value)
  return block and math.floor(string.byte(block, at) / value) % 2 == 1
end
