-- Identifies the present run of Redis: its process, and since when it is the primary. A start gives a new run_id, a
-- promotion a new replication id; both may have lost the last writes. Prepended to the scripts that need it.
local function present_run()
  local info = redis.call('INFO', 'server', 'replication')
  return string.match(info, 'run_id:(%x+)') .. ':' .. string.match(info, 'master_replid:(%x+)')
end
