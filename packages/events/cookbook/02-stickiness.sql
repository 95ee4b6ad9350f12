-- Stickiness: how many of a month's people are active on a day
--
-- People of an average day, as a share of the people of the whole month. 0.2 means that a player comes every fifth day.
-- If since or until cuts a month, only the days within the span count.
--
-- Change:
--   environment   id of your environment; the commands have production, a local stack has demo-development
--   since, until  first day, and the day after the last, in UTC
--
-- Cost: reads the days on which identities were active, from since to until, and no event. It holds each person of a day
-- in memory, some 150 bytes each.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13" --data-binary @02-stickiness.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 < 02-stickiness.sql
SELECT
    toStartOfMonth(day) AS month,
    uniqExact(person_key) AS people,
    dateDiff('day', greatest(month, {since: Date}), least(addMonths(month, 1), {until: Date})) AS days,
    uniqExact((day, person_key)) / days AS people_of_a_day,
    people_of_a_day / people AS stickiness
FROM person_days
WHERE environment_id = {environment: String} AND day >= {since: Date} AND day < {until: Date}
GROUP BY month
ORDER BY month
