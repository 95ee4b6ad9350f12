-- Stickiness: daily active people as a fraction of monthly active people
--
-- The average number of daily active people, divided by the number of people active in the month. 0.2 means that a
-- player is active every fifth day. If since or until is within a month, only the days in the time range are counted.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  first day and the day after the last day, in the time zone of your project
--
-- Cost: reads the active days of identities between since and until, and no events. Requires about 150 bytes of memory per
-- person and day.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13" --data-binary @02-stickiness.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 < 02-stickiness.sql
SELECT
    toStartOfMonth(day) AS month,
    uniqExact(person_key) AS people,
    dateDiff('day', greatest(month, {since: Date}), least(addMonths(month, 1), {until: Date})) AS days,
    uniqExact((day, person_key)) / days AS average_daily_people,
    average_daily_people / people AS stickiness
FROM person_days
WHERE environment_id = {environment: String} AND day >= {since: Date} AND day < {until: Date}
GROUP BY month
ORDER BY month
