-- Funnel, in any order
--
-- The number of people who performed the first action, how many of them also performed the second, and how many all three,
-- in any order and with any time in between.
--
-- Parameters:
--   environment           id of your environment. The commands use production; in a local stack, use demo-development
--   since, until          first day and the day after the last day, in the time zone of your project
--   first, second, third  names of the events
--
-- Cost: reads the active days of identities with these events between since and until, and no events.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13&param_first=session_started&param_second=level_completed&param_third=purchase" --data-binary @05-funnel-in-any-order.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 --param_first=session_started --param_second=level_completed --param_third=purchase < 05-funnel-in-any-order.sql
WITH performed AS
(
    SELECT
        person_key,
        maxIf(1, event_name = {first: String}) AS first,
        maxIf(1, event_name = {second: String}) AS second,
        maxIf(1, event_name = {third: String}) AS third
    FROM person_days
    WHERE environment_id = {environment: String} AND day >= {since: Date} AND day < {until: Date}
        AND event_name IN ({first: String}, {second: String}, {third: String})
    GROUP BY person_key
)
SELECT
    step,
    [{first: String}, {second: String}, {third: String}][step] AS event,
    countIf([first, first * second, first * second * third][step] = 1) AS people,
    people / countIf(first = 1) AS share
FROM performed
ARRAY JOIN [1, 2, 3] AS step
GROUP BY step
ORDER BY step
