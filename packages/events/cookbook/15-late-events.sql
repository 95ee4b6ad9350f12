-- Data quality: late events
--
-- For the events that arrived on each day: how many occurred more than an hour or a day before they arrived, how many
-- have a future timestamp, and the 99th percentile of the delay. This shows how long a day's numbers keep growing.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  first day of receipt and the day after the last day, in UTC
--
-- Cost: reads the times of all events that could have arrived in the time range, because an event may arrive up to 30
-- days after it occurred.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13" --data-binary @15-late-events.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 < 15-late-events.sql
SELECT
    toDate(received_at) AS receipt_day,
    count() AS events,
    countIf(event_time < received_at - INTERVAL 1 HOUR) AS over_one_hour_late,
    countIf(event_time < received_at - INTERVAL 1 DAY) AS over_one_day_late,
    countIf(event_time > received_at) AS in_future,
    quantileExact(0.99)(dateDiff('second', event_time, received_at)) AS delay_seconds_p99
FROM analysis_events
WHERE environment_id = {environment: String} AND received_at >= {since: Date} AND received_at < {until: Date}
    AND event_time >= {since: Date} - INTERVAL 31 DAY AND event_time < {until: Date} + INTERVAL 1 DAY
GROUP BY receipt_day
ORDER BY receipt_day
