-- Error rates by client version
--
-- Errors in rejected messages per thousand accepted events, for each version of a client library, highest rate first.
-- Use it to compare releases. Under load, only a sample of the errors is stored, and a message may have several errors.
-- Errors in test messages are included, because rejections have no test flag; accepted test events are not included.
-- Errors are retained for 90 days.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  first day of receipt and the day after the last day, in UTC
--
-- Cost: reads all errors in the environment and time range, and the versions of all events that could have arrived in
-- that range, because an event may arrive up to 30 days after it occurred.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13" --data-binary @13-error-rates-by-client-version.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 < 13-error-rates-by-client-version.sql
WITH counted AS
(
    SELECT library, library_version, 0 AS errors, count() AS events
    FROM analysis_events
    WHERE environment_id = {environment: String} AND received_at >= {since: Date} AND received_at < {until: Date}
        AND event_time >= {since: Date} - INTERVAL 31 DAY AND event_time < {until: Date} + INTERVAL 1 DAY
    GROUP BY library, library_version
    UNION ALL
    SELECT library, library_version, count() AS errors, 0 AS events
    FROM analysis_rejections
    WHERE environment_id = {environment: String} AND received_at >= {since: Date} AND received_at < {until: Date}
    GROUP BY library, library_version
)
SELECT
    library,
    library_version,
    sum(counted.events) AS events,
    sum(counted.errors) AS errors,
    if(events = 0, NULL, 1000 * errors / events) AS errors_per_thousand
FROM counted
GROUP BY library, library_version
ORDER BY errors_per_thousand DESC NULLS FIRST, library, library_version
