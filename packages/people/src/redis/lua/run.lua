-- The present run of Redis: its process, and since when it is the primary. A start gives it a new run_id, the promotion
-- of a replica a new replication id; both may have lost what was written last. Put before the scripts that need it.
local function present_run()
  local info = redis.call('INFO', 'server', 'replication')
  return string.match(info, 'run_id:(%x+)') .. ':' .. string.match(info, 'master_replid:(%x+)')
end
