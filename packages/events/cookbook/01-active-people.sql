-- Active people by day, week or month
--
-- How many people sent at least one event in each period. A person counts once, whatever devices and accounts they
-- used. When accounts are linked later, the numbers of earlier days follow.
--
-- Change:
--   environment   id of your environment; the commands have production, a local stack has demo-development
--   since, until  first day, and the day after the last, in UTC
--   period        day, week (from Monday) or month
--
-- Cost: reads the days on which identities were active, from since to until, and no event.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13&param_period=week" --data-binary @01-active-people.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 --param_period=week < 01-active-people.sql
SELECT toDate(dateTrunc({period: String}, day)) AS period, uniqExact(person_key) AS people
FROM person_days
WHERE environment_id = {environment: String} AND day >= {since: Date} AND day < {until: Date}
GROUP BY period
ORDER BY period
