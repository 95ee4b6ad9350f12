-- Sessions by day
--
-- The number of sessions that began on each day, the number of people, the median length, and the average number of events
-- per session. A session shared by two people is counted once for each person.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  first day and the day after the last day, in the time zone of your project
--
-- Cost: reads one small row per session, owner and day, from one day before since to one day after until.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13" --data-binary @07-sessions.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 < 07-sessions.sql
SELECT
    day,
    count() AS sessions,
    uniqExact(person_key) AS people,
    quantileExact(0.5)(seconds) AS median_seconds,
    sum(events) / sessions AS events_per_session
FROM sessions_between(environment = {environment: String}, since = {since: Date}, until = {until: Date})
GROUP BY day
ORDER BY day
