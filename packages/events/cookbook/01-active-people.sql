-- Active people by day, week or month
--
-- The number of people with at least one event per period. Each person is counted once on any number of devices. When
-- accounts are linked later, the numbers for earlier days change accordingly.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  first day and the day after the last day, in the time zone of your project
--   period        day, week (from Monday) or month
--
-- Cost: reads the active days of identities between since and until, and no events.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13&param_period=week" --data-binary @01-active-people.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 --param_period=week < 01-active-people.sql
SELECT toDate(dateTrunc({period: String}, day)) AS period, uniqExact(person_key) AS people
FROM person_days
WHERE environment_id = {environment: String} AND day >= {since: Date} AND day < {until: Date}
GROUP BY period
ORDER BY period
