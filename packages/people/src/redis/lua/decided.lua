-- Which facts after the linkers' commit were decided before a rebuild. Prepended to the scripts that need it. One bit
-- per offset, in blocks; layout.ts describes the hash.
local BLOCK_OFFSETS = 1024
-- Differs in length from every block field, so it cannot be one.
local LAST_DECIDED = 'last'

-- Returns the field of the block, the position of the byte in it, and the value of the bit.
local function bit_of(generation, offset)
  local at = offset % BLOCK_OFFSETS
  return struct.pack('>I1I6', generation, math.floor(offset / BLOCK_OFFSETS)), math.floor(at / 8) + 1, 2 ^ (at % 8)
end

local function is_bit_set(block, at, value)
  return block and math.floor(string.byte(block, at) / value) % 2 == 1
end
