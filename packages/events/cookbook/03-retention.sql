-- Retention by cohort
--
-- The people whose first event was in a given week, and how many of them were active in each later week. Week 0 is
-- the week of the first event, so its fraction is 1. Weeks begin on Monday.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  a Monday and the Monday after the last week, in the time zone of your project
--
-- Cost: reads the first event time of each identity in the environment and the active days of identities between since and
-- until, and no events.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13" --data-binary @03-retention.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 < 03-retention.sql
WITH newcomers AS
(
    SELECT person_key, toMonday(first_seen_day) AS cohort
    FROM persons
    WHERE environment_id = {environment: String} AND first_seen_day >= {since: Date} AND first_seen_day < {until: Date}
)
SELECT
    cohort,
    intDiv(toMonday(day) - cohort, 7) AS week,
    uniqExact(person_key) AS people,
    people / first_value(people) OVER (PARTITION BY cohort ORDER BY week) AS share
FROM person_days
GLOBAL INNER JOIN newcomers USING (person_key)
WHERE environment_id = {environment: String} AND day >= {since: Date} AND day < {until: Date}
GROUP BY cohort, week
ORDER BY cohort, week
