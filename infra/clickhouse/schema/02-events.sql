-- Columns are in the field order of audience-message.avsc, so that the writer copies whole runs of bytes; then the position of the
-- record in the log.
--
-- Sorting key: copies of a message are equal in all of its columns, so a merge folds them into one row. Type and time are at
-- its end, because two messages with the same id, name, owner and day are different messages. The time is there as a number:
-- if event_time itself were in the key, ClickHouse would compare a filter on the day with that column, far back in the key,
-- instead of with toDate(event_time). Measured with 20 million rows: the count of one day reads 0.7 million rows instead of 8.6.
--
-- Version: the copy received first wins a merge, as in events_exact, so an event never changes after it was read.
-- ReplacingMergeTree keeps the greatest version, hence the complement of the time.
--
-- Filters: the rows of one person have many names and days and so are all over the sorting key. A bloom filter is as large as
-- the number of different keys in its granule, so from_key and to_key, which are mostly zero, have a filter of a few bytes of
-- their own. user_key needs none: where it is set it equals identity_key (infra/decisions/0009-rows-of-a-person.md).
-- message_ids finds a message by its id, the fifth column of the key.
--
-- Settings: granules of 2,048 rows make rows that are found by their whole key cost a quarter. Compressed blocks of 16 KiB
-- instead of 64: a query for a few rows unpacks a block of each column around each of them. Parts are merged about ten at a
-- time, and parts below 128 MiB stay in one file (infra/decisions/0004-exactly-once-delivery-to-clickhouse.md). An insert is
-- acknowledged when it is on the disk (infra/decisions/0004-exactly-once-delivery-to-clickhouse.md). A block takes one
-- deduplication token for each partition it has rows of, up to three months of event times, and the tokens of ten minutes of
-- blocks must fit (deployment-settings.ts of @playline/runtime).
CREATE TABLE IF NOT EXISTS events
(
    environment_id LowCardinality(String) COMMENT 'Environment the message was sent to',
    type LowCardinality(String) COMMENT 'track, page, screen, identify or alias',
    event_name LowCardinality(String) COMMENT 'Name of the event; empty when its type has none',
    event_time DateTime64(3, 'UTC') COMMENT 'Time of the event by the clock of the client',
    received_at DateTime64(3, 'UTC') COMMENT 'When the gateway accepted it',
    message_id UUID COMMENT 'Id from the client; a message keeps its id however often it is sent',
    identity_key FixedString(16) COMMENT 'Keyed hash of the owner: the user if there is one, else the anonymous id; zero bytes without an owner',
    anonymous_key FixedString(16) COMMENT 'Keyed hash of anonymous_id; zero bytes when absent',
    user_key FixedString(16) COMMENT 'Keyed hash of user_id and its type; zero bytes when absent',
    from_key FixedString(16) COMMENT 'Keyed hash of from_id and its type; zero bytes for all but alias',
    to_key FixedString(16) COMMENT 'Keyed hash of to_id and its type; zero bytes for all but alias',
    anonymous_id String COMMENT 'Id of an anonymous visitor; empty when absent',
    user_id String COMMENT 'Id of a known user; empty when absent',
    identity_type LowCardinality(String) COMMENT 'Identity type of user_id; empty when absent',
    from_id String COMMENT 'alias: id that is linked; else empty',
    from_type LowCardinality(String) COMMENT 'alias: identity type of from_id; empty when absent',
    to_id String COMMENT 'alias: id that from_id is linked to; else empty',
    to_type LowCardinality(String) COMMENT 'alias: identity type of to_id; empty when absent',
    device_id String COMMENT 'Id of the device from the client; links no identities; empty when absent',
    session_id String COMMENT 'Id of the session from the client; links no identities; empty when absent',
    surface LowCardinality(String) COMMENT 'web, pixel, unity or unreal',
    consent_level LowCardinality(String) COMMENT 'Consent that the client states with the message; empty when absent',
    test Bool COMMENT 'Sent as a test; views for analysts leave such rows out',
    library LowCardinality(String) COMMENT 'context.library: name of the client library',
    library_version LowCardinality(String) COMMENT 'context.libraryVersion',
    user_agent LowCardinality(String) COMMENT 'context.userAgent; empty when absent',
    locale LowCardinality(String) COMMENT 'context.locale; empty when absent',
    timezone LowCardinality(String) COMMENT 'context.timezone; empty when absent',
    screen LowCardinality(String) COMMENT 'context.screen, for example 1920x1080; empty when absent',
    screen_density Nullable(Float64) COMMENT 'context.screenDensity; null when absent, so that averages are correct',
    page_url String COMMENT 'context.pageUrl; empty when absent',
    page_path String COMMENT 'context.pagePath; empty when absent',
    page_referrer String COMMENT 'context.pageReferrer; empty when absent',
    page_title String COMMENT 'context.pageTitle; empty when absent',
    browser_language LowCardinality(String) COMMENT 'context.browserLanguage; empty when absent',
    properties String COMMENT 'JSON object as in the body; empty when absent',
    traits String COMMENT 'JSON object as in the body; empty when absent',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    kafka_partition UInt16 COMMENT 'Partition of audience.messages.v1 with the record',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition',
    version UInt64 MATERIALIZED bitNot(bitOr(bitShiftLeft(toUInt64(toUnixTimestamp64Milli(received_at)), 22), bitOr(bitShiftLeft(bitAnd(toUInt64(kafka_partition), 255), 14), bitAnd(kafka_offset, 16383))))
        COMMENT 'Greatest for the copy received first: complement of 42 bits milliseconds, then 8 of the partition and 14 of the offset for copies of one millisecond',
    INDEX carried_keys (identity_key, anonymous_key) TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX alias_keys (from_key, to_key) TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX message_ids message_id TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {{engine ReplacingMergeTree(version)}}
PARTITION BY toStartOfMonth(event_time)
ORDER BY (environment_id, event_name, toDate(event_time), identity_key, message_id, toUnixTimestamp64Milli(event_time), type)
SETTINGS index_granularity = 2048, min_compress_block_size = 16384, merge_selector_base = 10, min_bytes_for_wide_part = 134217728,
    non_replicated_deduplication_window = 300000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Accepted messages as written: copies of a resent message may remain until a merge. Read events_exact or events_identified.';
