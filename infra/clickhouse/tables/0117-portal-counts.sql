-- What came in and what was rejected, by minute of receipt. Of events it reads the names' days around the span: a client
-- that was away for more than a day is not counted. Copies count until a merge; rejections are a sample.
CREATE OR REPLACE VIEW portal_counts DEFINER = views SQL SECURITY DEFINER AS
SELECT environment_id, 'accepted' AS fate, toStartOfMinute(received_at) AS minute_at, count() AS messages, max(received_at) AS last_at
FROM events
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
COMMENT 'portal_counts(environments = […], since = …, until = …): messages accepted, and requests with something rejected, a minute'
