-- Counts for the portal's overview. The tables contain no identity keys. The event writer counts each minute of receipt from
-- the log of events after the minute has ended, and again if messages of the minute are stored later
-- (packages/events/src/clickhouse/event-counts.ts, infra/decisions/0016-portal-reads.md).
--
-- Alerts and the overview need the environments of recent minutes only. TTL requires an aggregate function, so an empty part of
-- any environment removes the environment.
CREATE TABLE IF NOT EXISTS counted_minutes
(
    minute_at DateTime('UTC') COMMENT 'Minute in which messages were received',
    environment_id LowCardinality(String) COMMENT 'Environment of the messages; empty for rejections, and after a day, when merges combine all environments',
    stored SimpleAggregateFunction(sum, UInt64) COMMENT 'Number of rows stored with this minute of receipt, including copies and repeated inserts',
    stored_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Start of the last insert with messages received in this minute',
    counted_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Inserts that started before this time are counted in event_counts and event_delays'
)
ENGINE = {{engine AggregatingMergeTree}}
ORDER BY (minute_at, environment_id)
TTL minute_at + INTERVAL 1 DAY GROUP BY minute_at SET environment_id = substring(any(environment_id), 1, 0), stored = sum(stored), stored_at = max(stored_at), counted_at = max(counted_at)
COMMENT 'Minutes that contain messages, and whether they are counted in event_counts and event_delays; also read by the alerts of projects';

CREATE MATERIALIZED VIEW IF NOT EXISTS counted_minutes_of_events TO counted_minutes AS
SELECT toStartOfMinute(received_at) AS minute_at, environment_id, count() AS stored, now64(3, 'UTC') AS stored_at FROM events GROUP BY minute_at, environment_id, stored_at;

ALTER TABLE counted_minutes_of_events {{comments of counted_minutes}};

CREATE MATERIALIZED VIEW IF NOT EXISTS counted_minutes_of_rejections TO counted_minutes AS
SELECT toStartOfMinute(received_at) AS minute_at, '' AS environment_id, count() AS stored, now64(3, 'UTC') AS stored_at FROM message_rejections GROUP BY minute_at, stored_at;

ALTER TABLE counted_minutes_of_rejections {{comments of counted_minutes}};

-- A new count of a minute replaces the earlier one. Events and clients are counted separately, because their combinations
-- would have many more rows. A longer interval is the sum of its minutes. With these four lengths, each time range of the
-- overview has at most 180 intervals, so that a page reads few rows.
CREATE TABLE IF NOT EXISTS event_counts
(
    environment_id LowCardinality(String) COMMENT 'Environment of the messages',
    step_s UInt16 COMMENT 'Length of the interval in seconds: 60, 600, 3600 or 14400',
    start_at DateTime('UTC') COMMENT 'Start of the interval, by the time of receipt',
    kind LowCardinality(String) COMMENT 'event: messages by event name; client: messages by client version; rejection: recorded errors by code, field and client version',
    name LowCardinality(String) COMMENT 'Event name or error code; empty for events without a name and for clients',
    field LowCardinality(String) COMMENT 'Field of the error; empty for messages',
    library LowCardinality(String) COMMENT 'Client library; empty for events',
    library_version LowCardinality(String) COMMENT 'Version of the client library; empty for events',
    messages UInt64 COMMENT 'Number of messages, each counted once where it was first received, without test messages; number of errors for rejections',
    counted_at DateTime64(3, 'UTC') COMMENT 'Time of the count; the latest count applies'
)
ENGINE = {{engine ReplacingMergeTree(counted_at)}}
ORDER BY (environment_id, step_s, start_at, kind, name, field, library, library_version)
SETTINGS index_granularity = 2048
COMMENT 'Messages and recorded errors by minute, ten minutes, hour and four hours of receipt, computed from events and message_rejections by the event writer';

-- Delays are stored as upper bounds that grow by a fifth, so that the table is small. Copies that are not merged yet are counted,
-- which changes no quantile noticeably.
CREATE TABLE IF NOT EXISTS event_delays
(
    environment_id LowCardinality(String) COMMENT 'Environment of the messages',
    step_s UInt16 COMMENT 'Length of the interval in seconds: 60, 600, 3600 or 14400',
    start_at DateTime('UTC') COMMENT 'Start of the interval, by the time of receipt',
    delay_ms UInt32 COMMENT 'Upper bound of the time from receipt to the insert, in milliseconds; 0 for imported and generated messages',
    messages UInt64 COMMENT 'Number of stored messages with this delay, including test messages and copies that are not merged yet',
    counted_at DateTime64(3, 'UTC') COMMENT 'Time of the count; the latest count applies'
)
ENGINE = {{engine ReplacingMergeTree(counted_at)}}
ORDER BY (environment_id, step_s, start_at, delay_ms)
SETTINGS index_granularity = 2048
COMMENT 'Time from receipt to the insert by minute, ten minutes, hour and four hours, computed from events by the event writer';

-- Each span is divided into twelve slots, of which the latest count is kept, so that the current and the previous span can be
-- compared without a row per minute.
CREATE TABLE IF NOT EXISTS player_counts
(
    environment_id LowCardinality(String) COMMENT 'Environment of the players',
    span_s UInt32 COMMENT 'Length of the time range in seconds',
    slot_at DateTime('UTC') COMMENT 'Start of the slot that contains the end of the time range',
    kind LowCardinality(String) COMMENT 'all: players with any event; event: players with an event of this name',
    name LowCardinality(String) COMMENT 'Event name; empty for all events and for events without a name',
    players UInt64 COMMENT 'Number of distinct owners of events in the time range, without test messages and aliases',
    until_at DateTime('UTC') COMMENT 'End of the time range, by the time of the events; the latest count in a slot applies'
)
ENGINE = {{engine ReplacingMergeTree(until_at)}}
ORDER BY (environment_id, span_s, slot_at, kind, name)
TTL slot_at + toIntervalSecond(3 * span_s) DELETE
SETTINGS index_granularity = 1024
COMMENT 'Number of active players in the time ranges of the overview, computed from events by the event writer';

-- The counts of the minutes in a time range. A copy of a message is excluded if the message was received before, which is
-- exact for every copy. `compared` contains the messages of the minutes and all their earlier copies: messages received in the
-- five minutes before; earlier messages from clients whose clock is ahead; and, for messages that were received late, the
-- messages with the same key. A copy has the time of its message, so no other row can be an earlier copy.
--
-- Most messages have no copy, so only messages with the same hash as another one are compared by their key. Merges remove copies
-- while the query runs, so `repeated` must be the same wherever it is used; the event writer uses this definition instead of the
-- view, because a CTE is not materialized within a view.
CREATE VIEW IF NOT EXISTS derived_event_counts SQL SECURITY INVOKER AS
WITH
    {since: DateTime64(3, 'UTC')} - INTERVAL 5 MINUTE AS recent,
    compared AS
    (
        SELECT environment_id, type, event_name, event_time, message_id, identity_key, received_at, library, library_version, test, version
        FROM {{all}}.events
        WHERE received_at >= recent AND received_at < {until: DateTime64(3, 'UTC')}
        UNION ALL
        SELECT environment_id, type, event_name, event_time, message_id, identity_key, received_at, library, library_version, test, version
        FROM {{all}}.events
        WHERE received_at < recent AND event_time >= recent
        UNION ALL
        SELECT environment_id, type, event_name, event_time, message_id, identity_key, received_at, library, library_version, test, version
        FROM {{all}}.events
        WHERE received_at < recent AND event_time < recent
            AND (environment_id, event_name, toDate(event_time), identity_key, message_id) IN
            (
                SELECT environment_id, event_name, toDate(event_time), identity_key, message_id FROM {{all}}.events
                WHERE received_at >= {since: DateTime64(3, 'UTC')} AND received_at < {until: DateTime64(3, 'UTC')} AND event_time < recent
            )
    ),
    repeated AS MATERIALIZED
    (
        SELECT cityHash64(event_time, message_id, identity_key) AS hash FROM compared GROUP BY hash HAVING count() > 1
    )
SELECT
    environment AS environment_id, toUInt16(60) AS step_s, minute_at AS start_at, if(grouping(event) = 0, 'event', 'client') AS kind,
    event AS name, '' AS field, client AS library, client_version AS library_version, count() AS messages
FROM
(
    SELECT
        environment_id AS environment, event_name AS event, library AS client, library_version AS client_version,
        toStartOfMinute(toDateTime(received_at, 'UTC')) AS minute_at
    FROM {{all}}.events
    WHERE received_at >= {since: DateTime64(3, 'UTC')} AND received_at < {until: DateTime64(3, 'UTC')} AND NOT test
        AND cityHash64(event_time, message_id, identity_key) NOT IN (SELECT hash FROM repeated)
    UNION ALL
    SELECT
        environment_id, event_name, argMax(library, version), argMax(library_version, version),
        toStartOfMinute(toDateTime(min(received_at), 'UTC')) AS minute_at
    FROM compared
    WHERE cityHash64(event_time, message_id, identity_key) IN (SELECT hash FROM repeated)
    GROUP BY environment_id, type, event_name, event_time, message_id, identity_key
    HAVING minute_at >= {since: DateTime64(3, 'UTC')} AND NOT argMax(test, version)
)
GROUP BY GROUPING SETS ((environment, minute_at, event), (environment, minute_at, client, client_version))
UNION ALL
SELECT
    environment_id, toUInt16(60), toStartOfMinute(toDateTime(received_at, 'UTC')) AS minute_at, 'rejection',
    code, field, library, library_version, count()
FROM message_rejections FINAL
WHERE received_at >= {since: DateTime64(3, 'UTC')} AND received_at < {until: DateTime64(3, 'UTC')}
GROUP BY environment_id, minute_at, code, field, library, library_version;

CREATE VIEW IF NOT EXISTS derived_event_delays SQL SECURITY INVOKER AS
SELECT
    environment_id, toUInt16(60) AS step_s, toStartOfMinute(toDateTime(received_at, 'UTC')) AS start_at,
    if(storage_delay = 0, 0, toUInt32(exp2(storage_delay / 4))) AS delay_ms, count() AS messages
FROM {{all}}.events
WHERE received_at >= {since: DateTime64(3, 'UTC')} AND received_at < {until: DateTime64(3, 'UTC')}
GROUP BY environment_id, start_at, storage_delay;

-- Players by the time of their events. A copy has the same owner, time and name as its message and changes no number.
CREATE VIEW IF NOT EXISTS derived_player_counts SQL SECURITY INVOKER AS
SELECT environment_id, if(grouping(event_name) = 0, 'event', 'all') AS kind, event_name AS name, uniqExact(identity_key) AS players
FROM {{all}}.events
WHERE event_time >= {since: DateTime64(3, 'UTC')} AND event_time < {until: DateTime64(3, 'UTC')}
    AND identity_key != toFixedString('', 16) AND type != 'alias' AND NOT test
GROUP BY GROUPING SETS ((environment_id), (environment_id, event_name));
