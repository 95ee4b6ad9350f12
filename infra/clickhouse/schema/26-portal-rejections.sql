-- Reads the environment's rejections of the weeks of the span.
CREATE VIEW IF NOT EXISTS portal_rejections DEFINER = views SQL SECURITY DEFINER AS
SELECT code, field, surface, library, library_version, count() AS errors, max(received_at) AS last_at, argMax(trace_id, received_at) AS last_trace_id
FROM message_rejections FINAL
WHERE environment_id = {environment: String}
    AND received_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND received_at < fromUnixTimestamp64Milli({until: Int64}, 'UTC')
    AND ({code: String} = '' OR code = {code: String})
    AND ({field: String} = '' OR field = {field: String})
GROUP BY code, field, surface, library, library_version
COMMENT 'portal_rejections(environment = …, since = …, until = …, code = …, field = …): errors by code, field and client; a sample';

-- The same over time, in steps of so many seconds.
CREATE VIEW IF NOT EXISTS portal_rejection_times DEFINER = views SQL SECURITY DEFINER AS
SELECT toStartOfInterval(received_at, toIntervalSecond({step: UInt32})) AS step_at, code, count() AS errors
FROM message_rejections FINAL
WHERE environment_id = {environment: String}
    AND received_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND received_at < fromUnixTimestamp64Milli({until: Int64}, 'UTC')
    AND ({code: String} = '' OR code = {code: String})
    AND ({field: String} = '' OR field = {field: String})
GROUP BY step_at, code
COMMENT 'portal_rejection_times(environment = …, since = …, until = …, step = …, code = …, field = …): errors by step and code; a sample';

-- A developer who misses a message has the trace of the answer. Rows are found by the filter over traces, which FINAL would not
-- use; they are so few that their copies are folded here.
CREATE VIEW IF NOT EXISTS portal_rejections_of_trace DEFINER = views SQL SECURITY DEFINER AS
SELECT code, field, surface, library, library_version, received_at, trace_id
FROM message_rejections
WHERE environment_id = {environment: String} AND trace_id = {trace: String} AND trace_id != ''
LIMIT 1 BY code, field, received_at, kafka_partition, kafka_offset
COMMENT 'portal_rejections_of_trace(environment = …, trace = …): errors of one request; a sample';

-- Received and rejected messages by minute of receipt. Of events it reads the days around the span: messages of a client that was
-- offline for more than a day are not counted. Copies count until a merge; rejections are a sample.
CREATE VIEW IF NOT EXISTS portal_counts DEFINER = views SQL SECURITY DEFINER AS
SELECT environment_id, 'accepted' AS fate, toStartOfMinute(received_at) AS minute_at, count() AS messages, max(received_at) AS last_at
FROM {{all}}.events
WHERE environment_id IN ({environments: Array(String)})
    AND event_time >= fromUnixTimestamp64Milli({since: Int64}, 'UTC') - INTERVAL 1 DAY
    AND event_time < fromUnixTimestamp64Milli({until: Int64}, 'UTC') + INTERVAL 1 DAY
    AND received_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND received_at < fromUnixTimestamp64Milli({until: Int64}, 'UTC')
GROUP BY environment_id, minute_at
UNION ALL
SELECT environment_id, 'rejected' AS fate, toStartOfMinute(received_at) AS minute_at, uniqExact(trace_id) AS messages, max(received_at) AS last_at
FROM message_rejections
WHERE environment_id IN ({environments: Array(String)})
    AND received_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND received_at < fromUnixTimestamp64Milli({until: Int64}, 'UTC')
GROUP BY environment_id, minute_at
COMMENT 'portal_counts(environments = […], since = …, until = …): accepted messages and requests with rejections, by minute';
