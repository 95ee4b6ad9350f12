-- Sessions by day
--
-- How many sessions began on each day, of how many people, their median length, and how many events one has on
-- average. A session that two people share counts once for each.
--
-- Change:
--   environment   id of your environment; the commands have production, a local stack has demo-development
--   since, until  first day, and the day after the last, in UTC
--
-- Cost: reads times, owners and pages of all events from a day before since to a day after until: query weeks.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13" --data-binary @07-sessions.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 < 07-sessions.sql
SELECT
    toDate(started_at) AS day,
    count() AS sessions,
    uniqExactIf(person_key, person_id IS NOT NULL) AS people,
    quantileExact(0.5)(seconds) AS seconds_of_half,
    sum(events) / sessions AS events_of_one
FROM sessions(environment = {environment: String}, since = {since: Date}, until = {until: Date})
GROUP BY day
ORDER BY day
