-- Why messages were rejected, and by which client. It reads the environment's rejections of the span's weeks.
CREATE OR REPLACE VIEW portal_rejections DEFINER = views SQL SECURITY DEFINER AS
SELECT code, field, surface, library, library_version, count() AS errors, max(received_at) AS last_at, argMax(trace_id, received_at) AS last_trace_id
FROM message_rejections FINAL
WHERE environment_id = {environment: String}
    AND received_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND received_at < fromUnixTimestamp64Milli({until: Int64}, 'UTC')
    AND ({code: String} = '' OR code = {code: String})
    AND ({field: String} = '' OR field = {field: String})
GROUP BY code, field, surface, library, library_version
COMMENT 'portal_rejections(environment = …, since = …, until = …, code = …, field = …): counted by what was wrong and who sent it; a sample'
