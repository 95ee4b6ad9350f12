-- Funnel, in order
--
-- The number of people who performed the first step, then the second, then the third, within a given time after the first
-- step. Steps are ordered by client time, in milliseconds. For each further step, add a parameter, a condition that
-- uses the parameter, and a number to the list [1, 2, 3].
--
-- Parameters:
--   environment           id of your environment. The commands use production; in a local stack, use demo-development
--   since, until          first day and the day after the last day, in UTC
--   first, second, third  names of the events
--   seconds               maximum time from the first step to the last
--
-- Cost: reads only the events with these names between since and until, and only their name, time and owner.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13&param_first=session_started&param_second=level_completed&param_third=purchase&param_seconds=86400" --data-binary @04-funnel-in-order.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 --param_first=session_started --param_second=level_completed --param_third=purchase --param_seconds=86400 < 04-funnel-in-order.sql
WITH reached AS
(
    SELECT
        person_key,
        windowFunnel({seconds: UInt32} * 1000)(
            event_millisecond,
            event_name = {first: String},
            event_name = {second: String},
            event_name = {third: String}) AS steps
    FROM analysis_events
    WHERE environment_id = {environment: String} AND event_time >= {since: Date} AND event_time < {until: Date}
        AND event_name IN ({first: String}, {second: String}, {third: String}) AND person_id IS NOT NULL
    GROUP BY person_key
)
SELECT
    step,
    [{first: String}, {second: String}, {third: String}][step] AS event,
    countIf(steps >= step) AS people,
    people / countIf(steps >= 1) AS share
FROM reached
ARRAY JOIN [1, 2, 3] AS step
GROUP BY step
ORDER BY step
