-- The columns are those at the front of the sorting key of events, so the events of an identity are found by it. Of 20 million
-- events, about two for each identity, day and name, it has 15 million rows and 63 MB on disk, next to 2.1 GB.
-- Granules of 1,024 rows: a timeline reads the days of one person.
CREATE TABLE IF NOT EXISTS identity_days
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the owner of the events',
    day Date COMMENT 'Day of the events in UTC, by the clock of the client',
    event_name LowCardinality(String) COMMENT 'Name of the events; empty when their type has none',
    test Bool COMMENT 'Sent as a test'
)
ENGINE = {{engine ReplacingMergeTree}}
PARTITION BY toStartOfMonth(day)
ORDER BY (environment_id, identity_key, day, event_name, test)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Days and names of the events of each identity, derived from events; npm run derive corrects it. Read person_days.';

-- An alias is about its two sides and is no activity of its owner: erasing one side takes nothing from the owner. A copy of a
-- message adds nothing new, so a block can be written twice.
CREATE MATERIALIZED VIEW IF NOT EXISTS identity_days_of_events TO identity_days AS
SELECT environment_id, identity_key, toDate(event_time) AS day, event_name, test
FROM events
WHERE identity_key != toFixedString('', 16) AND type != 'alias'
GROUP BY environment_id, identity_key, day, event_name, test;

ALTER TABLE identity_days_of_events {{comments of identity_days}};

-- What identity_days must contain for the events of a span. `npm run derive` and `npm run verify` read it.
CREATE VIEW IF NOT EXISTS derived_identity_days SQL SECURITY INVOKER AS
SELECT environment_id, identity_key, toDate(event_time) AS day, event_name, test
FROM events
WHERE identity_key != toFixedString('', 16) AND type != 'alias' AND event_time >= {since: DateTime64(3, 'UTC')} AND event_time < {until: DateTime64(3, 'UTC')}
GROUP BY environment_id, identity_key, day, event_name, test
COMMENT 'derived_identity_days(since = …, until = …): days and names of the events of a span, as in identity_days';
