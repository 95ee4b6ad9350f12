-- Export events to CSV
--
-- All events of the span as CSV, with the names of the columns in its first line: without raw ids, with every property
-- that has a column. With an account that may read raw data, use analysis_events_raw to get the rest too. Write the
-- answer into a file with `> events.csv`.
--
-- Change:
--   environment   id of your environment; the commands have production, a local stack has demo-development
--   since, until  first day, and the day after the last, in UTC
--
-- Cost: reads all events from since to until, and streams them: memory does not grow with them. A query of an account may
-- take 60 seconds, so query days.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13" --data-binary @18-export-to-csv.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 < 18-export-to-csv.sql
SELECT * EXCEPT (person_key, event_second, event_day)
FROM analysis_events
WHERE environment_id = {environment: String} AND event_time >= {since: Date} AND event_time < {until: Date}
FORMAT CSVWithNames
