-- Returns the time after which links of each identity wait, by the rule that the identity graph's script uses.
-- KEYS  epoch
-- ARGV  namespace, environment, then identity keys
-- Reply a person name and the earliest cut-off among the person's holds ('' without a hold) for each key. The reply has
--       fewer entries than keys if the call has reached its limit on members
-- A call ends after it has read this many holds, which takes about two milliseconds.
local FIELDS_READ_MAX = 2000
-- Maximum number of arguments per command because Lua's stack is limited to about 8,000 values.
local FIELDS_MAX = 1000
local namespace, environment = ARGV[1], ARGV[2]
local FIRST_KEY = 3
local HOLDS = name_of(namespace, FAMILY.holds, environment)
local INDEXES = name_of(namespace, FAMILY.index, environment) .. ':'
local COMPONENTS = name_of(namespace, FAMILY.component, environment) .. ':'

if redis.call('EXISTS', KEYS[1]) == 0 then return redis.error_reply(NO_EPOCH) end

local function members_of(root)
  local value, keys = redis.call('GET', COMPONENTS .. root), {}
  for at = HEADER_BYTES + 1, #value, MEMBER_BYTES do keys[#keys + 1] = string.sub(value, at, at + KEY_BYTES - 1) end
  return keys
end

local function earliest_of(keys)
  local earliest = math.huge
  for first = 1, #keys, FIELDS_MAX do
    local last = math.min(first + FIELDS_MAX - 1, #keys)
    for _, cutoff in ipairs(redis.call('HMGET', HOLDS, unpack(keys, first, last))) do
      if cutoff then earliest = math.min(earliest, tonumber(cutoff)) end
    end
  end
  return earliest == math.huge and '' or string.format('%.0f', earliest)
end

local reply, known, fields_read = {}, {}, 0
for at = FIRST_KEY, #ARGV do
  if fields_read > FIELDS_READ_MAX then break end
  local key = ARGV[at]
  local root = redis.call('HGET', INDEXES .. bucket_of(key), key)
  -- The prefix distinguishes an erased identity from the person that still has its key as person key.
  local name = root or '-' .. key
  if not known[name] then
    local members = root and members_of(root) or { key }
    known[name], fields_read = earliest_of(members), fields_read + #members
  end
  reply[#reply + 1] = name
  reply[#reply + 1] = known[name]
end
return reply
