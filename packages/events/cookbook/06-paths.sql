-- Paths: the first steps of sessions
--
-- The most common sequences of first steps in a session: event names, or page routes. Sessions that began in the time
-- range are included.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  first day and the day after the last day, in UTC
--   steps         number of steps, 2 to 10
--   paths         number of paths, the most common first
--
-- Cost: reads all events from one day before since to one day after until, and stores the first steps of each session in
-- memory, about one kilobyte per session. Query days or weeks at a time.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13&param_steps=3&param_paths=20" --data-binary @06-paths.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 --param_steps=3 --param_paths=20 < 06-paths.sql
WITH beginnings AS
(
    WITH multiIf(event_name != '', event_name, page_route != '', page_route, type) AS step
    SELECT groupArraySorted({steps: UInt8})((event_time, message_id, step)) AS first_steps
    FROM analysis_events
    WHERE environment_id = {environment: String} AND session_id != ''
        AND event_time >= {since: Date} - INTERVAL 1 DAY AND event_time < {until: Date} + INTERVAL 1 DAY
    GROUP BY session_id, person_key
    HAVING min(event_time) >= {since: Date} AND min(event_time) < {until: Date}
)
SELECT arrayMap(each -> each.3, first_steps) AS path, count() AS sessions, sessions / sum(sessions) OVER () AS share
FROM beginnings
GROUP BY path
ORDER BY sessions DESC, path
LIMIT {paths: UInt32}
