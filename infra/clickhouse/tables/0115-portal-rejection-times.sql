-- The same over time, in steps of so many seconds.
CREATE OR REPLACE VIEW portal_rejection_times DEFINER = views SQL SECURITY DEFINER AS
SELECT toStartOfInterval(received_at, toIntervalSecond({step: UInt32})) AS step_at, code, count() AS errors
FROM message_rejections FINAL
WHERE environment_id = {environment: String}
    AND received_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND received_at < fromUnixTimestamp64Milli({until: Int64}, 'UTC')
    AND ({code: String} = '' OR code = {code: String})
    AND ({field: String} = '' OR field = {field: String})
GROUP BY step_at, code
COMMENT 'portal_rejection_times(environment = …, since = …, until = …, step = …, code = …, field = …): errors of each step and code; a sample'
