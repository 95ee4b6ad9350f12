-- One row an accepted message. Columns in the field order of audience-message.avsc, so that the writer copies whole
-- runs of bytes; then where the record stood in the log.
--
-- The sorting key holds only columns that a message sent again unchanged repeats exactly, so its copies fold into one
-- row in a merge. `type` is left out: it adds nothing to a key that ends in the message id, and nearly follows from
-- the event name. The copy received first wins a merge as it wins in events_exact, so what was once read never
-- changes: ReplacingMergeTree keeps the greatest version, hence the complement of the time.
CREATE TABLE IF NOT EXISTS events
(
    environment_id LowCardinality(String) COMMENT 'Environment the message was sent to',
    type LowCardinality(String) COMMENT 'track, page, screen, identify or alias',
    event_name LowCardinality(String) COMMENT 'Name of the event; empty where the type has none',
    event_time DateTime64(3, 'UTC') COMMENT 'When it happened, by the clock of the client',
    received_at DateTime64(3, 'UTC') COMMENT 'When the gateway accepted it',
    message_id UUID COMMENT 'Given by the client; one message keeps its id however often it is sent',
    identity_key FixedString(16) COMMENT 'Keyed hash of the owner: the user if there is one, else the anonymous id; zero bytes for nobody',
    anonymous_key FixedString(16) COMMENT 'Keyed hash of anonymous_id; zero bytes when absent',
    user_key FixedString(16) COMMENT 'Keyed hash of user_id and its type; zero bytes when absent',
    from_key FixedString(16) COMMENT 'Keyed hash of from_id and its type; zero bytes for all but alias',
    to_key FixedString(16) COMMENT 'Keyed hash of to_id and its type; zero bytes for all but alias',
    anonymous_id String COMMENT 'Id of a visitor who is not known yet; empty when absent',
    user_id String COMMENT 'Id of a known user; empty when absent',
    identity_type LowCardinality(String) COMMENT 'What user_id is; empty when not said',
    from_id String COMMENT 'alias: the id that is joined; else empty',
    from_type LowCardinality(String) COMMENT 'alias: what from_id is; empty when not said',
    to_id String COMMENT 'alias: the id it is joined to; else empty',
    to_type LowCardinality(String) COMMENT 'alias: what to_id is; empty when not said',
    device_id String COMMENT 'Device as the client names it; links nobody; empty when absent',
    session_id String COMMENT 'Session as the client names it; links nobody; empty when absent',
    surface LowCardinality(String) COMMENT 'web, pixel, unity or unreal',
    consent_level LowCardinality(String) COMMENT 'Consent the client states with the message; empty when absent',
    test Bool COMMENT 'Sent as a test; analysts leave such rows out',
    library LowCardinality(String) COMMENT 'context.library: name of the client library',
    library_version LowCardinality(String) COMMENT 'context.libraryVersion',
    user_agent LowCardinality(String) COMMENT 'context.userAgent; empty when absent',
    locale LowCardinality(String) COMMENT 'context.locale; empty when absent',
    timezone LowCardinality(String) COMMENT 'context.timezone; empty when absent',
    screen LowCardinality(String) COMMENT 'context.screen, for example 1920x1080; empty when absent',
    screen_density Nullable(Float64) COMMENT 'context.screenDensity; null when absent, so that averages stay true',
    page_url String COMMENT 'context.pageUrl; empty when absent',
    page_path String COMMENT 'context.pagePath; empty when absent',
    page_referrer String COMMENT 'context.pageReferrer; empty when absent',
    page_title String COMMENT 'context.pageTitle; empty when absent',
    browser_language LowCardinality(String) COMMENT 'context.browserLanguage; empty when absent',
    properties String COMMENT 'The JSON object as it stood in the body; empty when absent',
    traits String COMMENT 'The JSON object as it stood in the body; empty when absent',
    trace_id String COMMENT 'Trace of the request that brought it: 32 hexadecimal digits',
    kafka_partition UInt16 COMMENT 'Partition of audience.messages.v1 the record stood in',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition',
    version UInt64 MATERIALIZED bitNot(bitOr(bitShiftLeft(toUInt64(toUnixTimestamp64Milli(received_at)), 22), bitOr(bitShiftLeft(bitAnd(toUInt64(kafka_partition), 255), 14), bitAnd(kafka_offset, 16383))))
        COMMENT 'Greatest for the copy received first: complement of 42 bits milliseconds, then 8 of the partition and 14 of the offset for copies of one millisecond'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(event_time)
ORDER BY (environment_id, event_name, toDate(event_time), identity_key, message_id)
SETTINGS non_replicated_deduplication_window = 100000
COMMENT 'Accepted messages, as written: copies of a message sent again may stand until a merge. Read events_exact or events_identified.'
