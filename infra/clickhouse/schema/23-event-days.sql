-- Numbers of events per day, so that a count of all events does not compare all rows to find copies. The event writer counts a day
-- after its last insert (packages/events/src/clickhouse/event-days.ts). Readers count the other days from events, so the
-- numbers are always exact. Each node of a cluster counts its own rows.
--
-- A day is counted if its last insert started before the count. An erasure marks the day before it deletes rows, with a time
-- fifteen minutes in the future, and no day is counted while a deletion is unfinished.
CREATE TABLE IF NOT EXISTS counted_days
(
    environment_id LowCardinality(String) COMMENT 'Environment of the events',
    day Date COMMENT 'Day of the events in UTC, according to the client clock',
    stored_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Start of the last insert with events of this day, or fifteen minutes after an erasure began to delete events of this day',
    counted_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Inserts that started before this time are counted in event_days'
)
ENGINE = {{engine AggregatingMergeTree}}
ORDER BY (environment_id, day)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Days that contain events, and whether they are counted in event_days';

CREATE MATERIALIZED VIEW IF NOT EXISTS counted_days_of_events TO counted_days AS
SELECT environment_id, toDate(event_time) AS day, now64(3, 'UTC') AS stored_at FROM events GROUP BY environment_id, day;

ALTER TABLE counted_days_of_events {{comments of counted_days}};

CREATE TABLE IF NOT EXISTS event_days
(
    environment_id LowCardinality(String) COMMENT 'Environment of the events',
    day Date COMMENT 'Day of the events in UTC, according to the client clock',
    event_name LowCardinality(String) COMMENT 'Name of the events; empty for types without a name',
    type LowCardinality(String) COMMENT 'Type of the events: track, page, screen, identify or alias',
    events UInt64 COMMENT 'Number of events, each counted once, without test messages',
    first_at DateTime64(3, 'UTC') COMMENT 'Time of the first of these events',
    last_at DateTime64(3, 'UTC') COMMENT 'Time of the last of these events',
    counted_at DateTime64(3, 'UTC') COMMENT 'Time of the count; the latest count applies',
    removed UInt8 MATERIALIZED events = 0 COMMENT '1 if the number of events is 0, so that a query with FINAL does not return the row'
)
ENGINE = {{engine ReplacingMergeTree(counted_at, removed)}}
ORDER BY (environment_id, day, event_name, type)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Number of events per day, name and type. Read events_per_day instead, which also contains days that are not counted yet.';

-- The expected rows of event_days for whole days.
CREATE VIEW IF NOT EXISTS derived_event_days SQL SECURITY INVOKER AS
SELECT environment_id, toDate(event_time) AS day, event_name, type, count() AS events, min(event_time) AS first_at, max(event_time) AS last_at
FROM events FINAL
WHERE event_time >= {since: DateTime64(3, 'UTC')} AND event_time < {until: DateTime64(3, 'UTC')} AND NOT test
GROUP BY environment_id, day, event_name, type
SETTINGS do_not_merge_across_partitions_select_final = 1, optimize_move_to_prewhere_if_final = 1
COMMENT 'derived_event_days(since = …, until = …): expected rows of event_days for the days of a time range';

-- The list of open days is computed once each time a query uses the view, so that a day is in exactly one of the two parts. Two
-- subqueries would read counted_days at different times. Without open days, empty(open_days) and notEmpty(open_days) are
-- constants of the query, so planning removes the filter on counts and reads no rows of events.
CREATE VIEW IF NOT EXISTS {{rows}}.events_per_day DEFINER = views SQL SECURITY DEFINER AS
WITH (SELECT groupArrayIf((environment_id, day), stored_at >= counted_at) FROM counted_days FINAL) AS open_days
SELECT environment_id, day AS event_day, event_name, type, events, first_at AS first_seen_at, last_at AS last_seen_at
FROM event_days FINAL
WHERE empty(open_days) OR (environment_id, day) NOT IN (SELECT arrayJoin(open_days))
UNION ALL
SELECT environment_id, toDate(event_time) AS event_day, event_name, type, count(), min(event_time), max(event_time)
FROM events FINAL
WHERE notEmpty(open_days) AND NOT test AND (environment_id, toDate(event_time)) IN (SELECT arrayJoin(open_days))
GROUP BY environment_id, event_day, event_name, type
SETTINGS do_not_merge_across_partitions_select_final = 1, optimize_move_to_prewhere_if_final = 1
COMMENT 'Number of events per day in UTC, name and type, without test messages. Filter by environment_id and event_day, and add the numbers: in a cluster, each shard has a row. Faster than counting the rows of analysis_events.';

ALTER TABLE {{rows}}.events_per_day {{comments of event_days}},
    COMMENT COLUMN event_day 'Day of the events in UTC, according to the client clock',
    COMMENT COLUMN first_seen_at 'Time of the first of these events',
    COMMENT COLUMN last_seen_at 'Time of the last of these events';
