-- Export events to Parquet
--
-- All events in the time range as a Parquet file, without raw ids, with the safe properties and every property that has
-- a column. With an account that may read raw data, query analysis_events_raw for all columns. Write the response to a
-- file with `> events.parquet`.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  first day and the day after the last day, in UTC
--
-- Cost: reads and streams all events between since and until, so memory use does not depend on their number. A query may
-- take at most 60 seconds, so export a few days at a time.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13" --data-binary @17-export-to-parquet.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 < 17-export-to-parquet.sql
SELECT * EXCEPT (person_key, event_second, event_day)
FROM analysis_events
WHERE environment_id = {environment: String} AND event_time >= {since: Date} AND event_time < {until: Date}
FORMAT Parquet
