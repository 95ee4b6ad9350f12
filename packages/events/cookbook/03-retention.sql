-- Retention by cohort
--
-- Of the people whose first event was in a week, how many were active again in each later week. Week 0 is the
-- week of the first event, so its share is 1. Weeks begin on Monday.
--
-- Change:
--   environment   id of your environment; the commands have production, a local stack has demo-development
--   since, until  a Monday, and the Monday after the last week, in UTC
--
-- Cost: reads when each identity of the environment was first seen, and the days on which identities were active, from
-- since to until. No event.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13" --data-binary @03-retention.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 < 03-retention.sql
WITH newcomers AS
(
    SELECT person_key, toMonday(first_seen_at) AS cohort
    FROM persons
    WHERE environment_id = {environment: String} AND first_seen_at >= {since: Date} AND first_seen_at < {until: Date}
)
SELECT
    cohort,
    intDiv(toMonday(day) - cohort, 7) AS week,
    uniqExact(person_key) AS people,
    people / first_value(people) OVER (PARTITION BY cohort ORDER BY week) AS share
FROM person_days
INNER JOIN newcomers USING (person_key)
WHERE environment_id = {environment: String} AND day >= {since: Date} AND day < {until: Date}
GROUP BY cohort, week
ORDER BY cohort, week
