-- Reads the environment's rejections for all weeks in the time range.
CREATE VIEW IF NOT EXISTS portal_rejections DEFINER = views SQL SECURITY DEFINER AS
SELECT code, field, surface, library, library_version, count() AS errors, max(received_at) AS last_at, argMax(trace_id, received_at) AS last_trace_id
FROM message_rejections FINAL
WHERE environment_id = {environment: String}
    AND received_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND received_at < fromUnixTimestamp64Milli({until: Int64}, 'UTC')
    AND ({code: String} = '' OR code = {code: String})
    AND ({field: String} = '' OR field = {field: String})
GROUP BY code, field, surface, library, library_version
COMMENT 'portal_rejections(environment = …, since = …, until = …, code = …, field = …): number of errors by code, field and client library, from a sample';

-- Errors over time, in steps of `step` seconds.
CREATE VIEW IF NOT EXISTS portal_rejection_times DEFINER = views SQL SECURITY DEFINER AS
SELECT toStartOfInterval(received_at, toIntervalSecond({step: UInt32})) AS step_at, code, count() AS errors
FROM message_rejections FINAL
WHERE environment_id = {environment: String}
    AND received_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND received_at < fromUnixTimestamp64Milli({until: Int64}, 'UTC')
    AND ({code: String} = '' OR code = {code: String})
    AND ({field: String} = '' OR field = {field: String})
GROUP BY step_at, code
COMMENT 'portal_rejection_times(environment = …, since = …, until = …, step = …, code = …, field = …): number of errors by step and code, from a sample';

-- To find a missing message, a developer takes the trace id from the response. The bloom filter on trace ids finds the rows;
-- FINAL would not use that filter. The result is small enough to be deduplicated here.
CREATE VIEW IF NOT EXISTS portal_rejections_of_trace DEFINER = views SQL SECURITY DEFINER AS
SELECT code, field, surface, library, library_version, received_at, trace_id
FROM message_rejections
WHERE environment_id = {environment: String} AND trace_id = {trace: String} AND trace_id != ''
LIMIT 1 BY code, field, received_at, kafka_partition, kafka_offset
COMMENT 'portal_rejections_of_trace(environment = …, trace = …): errors in one request, from a sample';
