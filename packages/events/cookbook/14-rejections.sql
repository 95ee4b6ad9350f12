-- Data quality: rejected messages
--
-- The errors in rejected messages: codes, fields and client versions, most common first. The response to a request
-- contains its trace id. Under load, only a sample of the errors is stored. Errors are retained for 90 days.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  first day of receipt and the day after the last day, in UTC
--
-- Cost: reads the errors in the environment and the time range.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13" --data-binary @14-rejections.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 < 14-rejections.sql
SELECT
    code,
    field,
    library,
    library_version,
    count() AS errors,
    uniqExact(trace_id) AS requests,
    min(received_at) AS first_at,
    max(received_at) AS last_at
FROM analysis_rejections
WHERE environment_id = {environment: String} AND received_at >= {since: Date} AND received_at < {until: Date}
GROUP BY code, field, library, library_version
ORDER BY errors DESC, code, field, library, library_version
LIMIT 200
