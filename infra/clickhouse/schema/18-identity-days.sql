-- The columns are the leading columns of the sorting key of events, so that queries find an identity's events by key. For 20
-- million events, about two per identity, day and name, the table has 15 million rows and 63 MB on disk, compared with 2.1 GB for
-- events. Granules have 1,024 rows, because a timeline reads one person's days.
CREATE TABLE IF NOT EXISTS identity_days
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the owner of the events',
    day Date COMMENT 'Day of the events in UTC, according to the client clock',
    event_name LowCardinality(String) COMMENT 'Name of the events; empty for types without a name',
    test Bool COMMENT 'Flag for test messages'
)
ENGINE = {{engine ReplacingMergeTree}}
PARTITION BY toStartOfMonth(day)
ORDER BY (environment_id, identity_key, day, event_name, test)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Days and event names per identity, derived from events and corrected by npm run derive. Read person_days instead.';

-- An alias concerns the two ids it links and is not an activity of its owner: erasing one id must not remove an activity. A
-- copy of a message adds no row, so a block can be written twice.
CREATE MATERIALIZED VIEW IF NOT EXISTS identity_days_of_events TO identity_days AS
SELECT environment_id, identity_key, toDate(event_time) AS day, event_name, test
FROM events
WHERE identity_key != toFixedString('', 16) AND type != 'alias'
GROUP BY environment_id, identity_key, day, event_name, test;

ALTER TABLE identity_days_of_events {{comments of identity_days}};

-- The expected rows of identity_days for a time range, read by `npm run derive` and `npm run verify`.
CREATE VIEW IF NOT EXISTS derived_identity_days SQL SECURITY INVOKER AS
{{query of identity_days_of_events between since and until}}
COMMENT 'derived_identity_days(since = …, until = …): expected rows of identity_days for the events in a time range';
