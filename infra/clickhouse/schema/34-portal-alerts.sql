-- The numbers that the alerts of projects need, for many environments in one query, because the portal reads them every half
-- minute. `now` is the start of the current minute in epoch seconds. Rejected and received messages are not read here: the
-- gateways count them in Redis.
CREATE VIEW IF NOT EXISTS portal_alert_counts DEFINER = views SQL SECURITY DEFINER AS
WITH toDateTime({now: UInt32}, 'UTC') AS now_at
SELECT environment_id, part, value FROM
(
    SELECT environment_id, 'same minutes of yesterday' AS part, toUInt64(sum(messages)) AS value
    FROM event_counts FINAL
    WHERE environment_id IN ({environments: Array(String)}) AND step_s = 60 AND kind = 'client'
        AND start_at >= now_at - INTERVAL 1455 MINUTE AND start_at < now_at - INTERVAL 1 DAY
    GROUP BY environment_id
    UNION ALL
    SELECT environment_id, 'day before', toUInt64(sum(messages))
    FROM event_counts FINAL
    WHERE environment_id IN ({environments: Array(String)}) AND step_s = 3600 AND kind = 'client'
        AND start_at >= now_at - INTERVAL 2 DAY AND start_at < now_at - INTERVAL 1 DAY
    GROUP BY environment_id
    UNION ALL
    SELECT environment_id, 'hour before', toUInt64(sum(messages))
    FROM event_counts FINAL
    WHERE environment_id IN ({environments: Array(String)}) AND step_s = 60 AND kind = 'client'
        AND start_at >= now_at - INTERVAL 75 MINUTE AND start_at < now_at - INTERVAL 15 MINUTE
    GROUP BY environment_id
    UNION ALL
    SELECT environment_id, 'stored', toUInt64(sum(stored))
    FROM {{all}}.counted_minutes
    WHERE environment_id IN ({environments: Array(String)})
        AND minute_at >= now_at - INTERVAL 15 MINUTE AND minute_at < now_at - INTERVAL 5 MINUTE
    GROUP BY environment_id
    UNION ALL
    SELECT environment_id, 'delay in ms', toUInt64(quantileExactWeightedIf(0.99)(delay_ms, messages, delay_ms > 0))
    FROM event_delays FINAL
    WHERE environment_id IN ({environments: Array(String)}) AND step_s = 60 AND start_at >= now_at - INTERVAL 15 MINUTE
    GROUP BY environment_id
    UNION ALL
    SELECT environment_id, counted.1, counted.2
    FROM
    (
        SELECT environment_id, [
            ('pending mints', toUInt64(countIf(status = 'pending' AND requested_at < now_at - INTERVAL 30 MINUTE))),
            ('failed mints', toUInt64(countIf(status = 'failed' AND changed_at >= now_at - INTERVAL 1 HOUR)))] AS counts
        FROM mint_requests FINAL
        WHERE environment_id IN ({environments: Array(String)}) AND requested_at >= now_at - INTERVAL 7 DAY
        GROUP BY environment_id
    )
    ARRAY JOIN counts AS counted
)
COMMENT 'portal_alert_counts(environments = […], now = …): counts of messages, their delay and mint requests, one row per environment and part';
