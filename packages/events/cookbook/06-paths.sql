-- Paths: how sessions begin
--
-- The commonest sequences of the first things that happen in a session: names of events, and routes of pages. A
-- session counts if it began within the span.
--
-- Change:
--   environment   id of your environment; the commands have production, a local stack has demo-development
--   since, until  first day, and the day after the last, in UTC
--   steps         how many things, 2 to 10
--   paths         how many paths, the commonest first
--
-- Cost: reads all events from a day before since to a day after until, and keeps the first steps of each session in
-- memory, about a kilobyte each: query days or weeks.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13&param_steps=3&param_paths=20" --data-binary @06-paths.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 --param_steps=3 --param_paths=20 < 06-paths.sql
WITH beginnings AS
(
    WITH multiIf(event_name != '', event_name, page_route != '', page_route, type) AS thing
    SELECT groupArraySorted({steps: UInt8})((event_time, message_id, thing)) AS things
    FROM analysis_events
    WHERE environment_id = {environment: String} AND session_id != ''
        AND event_time >= {since: Date} - INTERVAL 1 DAY AND event_time < {until: Date} + INTERVAL 1 DAY
    GROUP BY session_id, person_key
    HAVING min(event_time) >= {since: Date} AND min(event_time) < {until: Date}
)
SELECT arrayMap(each -> each.3, things) AS path, count() AS sessions, sessions / sum(sessions) OVER () AS share
FROM beginnings
GROUP BY path
ORDER BY sessions DESC, path
LIMIT {paths: UInt32}
