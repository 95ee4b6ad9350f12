-- The part of a session that one identity sent on one day. No column changes when a copy of a message is added:
--
-- - A day is the day of event_time, because copies agree in this time, but not in the time of receipt.
-- - The copy received first has the earliest capped time and the greatest lead, so the minimum and the maximum are its values. The
--   latest capped time would not be: a later copy of a message from a clock that is ahead is capped later. The table therefore
--   contains the last time without the cap, and the lead, by which the view reduces it.
-- - Messages are counted as distinct hashes of the columns in which all copies agree, and no two messages. An array takes less
--   time than a state of uniqExact. Its length is limited, because a client that always sends the same session id would create a
--   row without a bound.
--
-- The key begins with the day, so that a query reads only the days in its range. An erasure reads one granule per day and identity.
CREATE TABLE IF NOT EXISTS session_days
(
    environment_id LowCardinality(String) COMMENT 'Environment of the session',
    day Date COMMENT 'Day of the events in UTC, according to the client clock',
    identity_key FixedString(16) COMMENT 'Keyed hash of the owner of the events',
    session_id String COMMENT 'Session id from the client',
    surface LowCardinality(String) COMMENT 'Surface of the events',
    first_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) COMMENT 'Time of the first event, capped at one minute after the gateway received the event',
    last_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Time of the last event, according to the client clock',
    lead_ms SimpleAggregateFunction(max, UInt64) COMMENT 'Greatest time in milliseconds by which the time of an event was capped',
    entry SimpleAggregateFunction(max, String) COMMENT 'Path of the first page after 16 bytes, by which the first page has the greatest value; empty if there is no page',
    messages SimpleAggregateFunction(groupUniqArrayArray(100000), Array(UInt64)) COMMENT 'Hashes of the messages, at most 100,000'
)
ENGINE = {{engine AggregatingMergeTree}}
PARTITION BY toStartOfMonth(day)
ORDER BY (environment_id, day, identity_key, session_id, surface)
SETTINGS index_granularity = 1024, merge_selector_base = 10, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Sessions per identity and day, without test messages, derived from events and corrected by npm run derive. Read sessions instead.';

-- The bytes before the path are the complements of the capped time and of the order of receipt, most significant byte first.
CREATE MATERIALIZED VIEW IF NOT EXISTS session_days_of_events TO session_days AS
SELECT
    environment_id, toDate(event_time) AS day, identity_key, session_id, surface,
    min(least(event_time, received_at + INTERVAL 1 MINUTE)) AS first_at,
    max(event_time) AS last_at,
    max(toUInt64(greatest(0, toUnixTimestamp64Milli(event_time) - toUnixTimestamp64Milli(received_at) - 60000))) AS lead_ms,
    maxIf(concat(reinterpretAsFixedString(byteSwap(bitNot(toUnixTimestamp64Milli(least(event_time, received_at + INTERVAL 1 MINUTE))))), reinterpretAsFixedString(byteSwap(version)), page_path), page_path != '') AS entry,
    groupUniqArray(100000)(cityHash64(message_id, type, event_name, event_time, identity_key)) AS messages
FROM events
WHERE identity_key != toFixedString('', 16) AND type != 'alias' AND session_id != '' AND NOT test
GROUP BY environment_id, day, identity_key, session_id, surface;

ALTER TABLE session_days_of_events {{comments of session_days}};

-- The expected rows of session_days for a time range. The states of several time ranges can be merged.
CREATE VIEW IF NOT EXISTS derived_session_days SQL SECURITY INVOKER AS
{{query of session_days_of_events between since and until}}
COMMENT 'derived_session_days(since = …, until = …): expected rows of session_days for the events in a time range';
