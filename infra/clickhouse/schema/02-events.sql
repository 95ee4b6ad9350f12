-- Columns are in the field order of audience-message.avsc, so that the writer can copy whole byte ranges. The last columns
-- contain the record's position in the log.
--
-- Sorting key: copies of a message are equal in all key columns, so a merge reduces them to one row. Type and time are at the end
-- of the key, because two messages with the same id, name, owner and day can still be different messages. The key contains the
-- time as a number: if it contained event_time itself, ClickHouse would compare a filter on the day with event_time, far back in
-- the key, instead of with toDate(event_time). With 20 million rows, counting one day reads 0.7 million rows instead of 8.6.
--
-- Version: the copy received first wins a merge, as in events_exact, so an event never changes after it was read.
-- ReplacingMergeTree keeps the greatest version, so the version is the complement of the time.
--
-- Filters: one person's rows have many event names and days, so they are spread over the table. The size of a bloom filter
-- depends on the number of distinct keys in its granule. from_key and to_key are mostly zero, so they have a separate filter
-- of a few bytes. user_key needs no filter: if it is set, it equals identity_key (infra/decisions/0009-rows-of-a-person.md).
-- message_ids finds a message by its id, the fifth column of the key. receipt and occurrence find the messages of the last
-- minutes, which are in small parts until a merge.
--
-- storage_delay has few values, so it compresses well. Messages that are older than the retention of the log were imported, and
-- the messages of npm run demo have generated times of receipt, so their delay is 0. The column is not MATERIALIZED, because a
-- row that is restored or moved to another shard must keep its value. A view that counts delays would make inserts of few rows
-- a sixth slower (infra/decisions/0004-exactly-once-delivery-to-clickhouse.md).
--
-- Settings: granules of 2,048 rows reduce the cost of lookups by the complete key to a quarter. Compressed blocks have 16 KiB
-- instead of 64, because a query for a few rows decompresses one block per column around each row. A merge combines about ten
-- parts, and parts below 128 MiB are stored in one file. An insert is acknowledged when its rows are on disk. For merges and
-- inserts, see infra/decisions/0004-exactly-once-delivery-to-clickhouse.md. A block uses one deduplication token per
-- partition, and its event times span up to three months. The deduplication window covers ten minutes of blocks
-- (deployment-settings.ts in @playline/runtime).
CREATE TABLE IF NOT EXISTS events
(
    environment_id LowCardinality(String) COMMENT 'Environment the message was sent to',
    type LowCardinality(String) COMMENT 'Type of the message: track, page, screen, identify or alias',
    event_name LowCardinality(String) COMMENT 'Name of the event; empty for types without a name',
    event_time DateTime64(3, 'UTC') COMMENT 'Time of the event according to the client clock',
    received_at DateTime64(3, 'UTC') COMMENT 'Time when the gateway accepted the message',
    message_id UUID COMMENT 'Message id from the client, the same each time the message is sent',
    identity_key FixedString(16) COMMENT 'Keyed hash of the owner, which is the user if present, else the anonymous id; zero bytes if the message has no owner',
    anonymous_key FixedString(16) COMMENT 'Keyed hash of anonymous_id; zero bytes when absent',
    user_key FixedString(16) COMMENT 'Keyed hash of user_id and its type; zero bytes when absent',
    from_key FixedString(16) COMMENT 'Keyed hash of from_id and its type; zero bytes except for alias',
    to_key FixedString(16) COMMENT 'Keyed hash of to_id and its type; zero bytes except for alias',
    anonymous_id String COMMENT 'Id of an anonymous visitor; empty when absent',
    user_id String COMMENT 'Id of a known user; empty when absent',
    identity_type LowCardinality(String) COMMENT 'Identity type of user_id; empty when absent',
    from_id String COMMENT 'Linked id of an alias; empty for other types',
    from_type LowCardinality(String) COMMENT 'Identity type of from_id; empty when absent',
    to_id String COMMENT 'Id that an alias links from_id to; empty for other types',
    to_type LowCardinality(String) COMMENT 'Identity type of to_id; empty when absent',
    device_id String COMMENT 'Device id from the client, not used for linking; empty when absent',
    session_id String COMMENT 'Session id from the client, not used for linking; empty when absent',
    surface LowCardinality(String) COMMENT 'Surface of the client: web, pixel, unity or unreal',
    consent_level LowCardinality(String) COMMENT 'Consent level reported by the client; empty when absent',
    test Bool COMMENT 'Flag for test messages, which the analyst views exclude',
    library LowCardinality(String) COMMENT 'context.library, the name of the client library',
    library_version LowCardinality(String) COMMENT 'Version of the client library, context.libraryVersion',
    user_agent LowCardinality(String) COMMENT 'context.userAgent; empty when absent',
    locale LowCardinality(String) COMMENT 'context.locale; empty when absent',
    timezone LowCardinality(String) COMMENT 'context.timezone; empty when absent',
    screen LowCardinality(String) COMMENT 'context.screen, for example 1920x1080; empty when absent',
    screen_density Nullable(Float64) COMMENT 'context.screenDensity; NULL when absent, so that averages are correct',
    page_url String COMMENT 'context.pageUrl; empty when absent',
    page_path String COMMENT 'context.pagePath; empty when absent',
    page_referrer String COMMENT 'context.pageReferrer; empty when absent',
    page_title String COMMENT 'context.pageTitle; empty when absent',
    browser_language LowCardinality(String) COMMENT 'context.browserLanguage; empty when absent',
    properties String COMMENT 'Properties as in the request body, a JSON object; empty when absent',
    traits String COMMENT 'Traits as in the request body, a JSON object; empty when absent',
    trace_id String COMMENT 'Trace id of the request, 32 hexadecimal digits',
    kafka_partition UInt16 COMMENT 'Partition of audience.messages.v1 that contains the record',
    kafka_offset UInt64 COMMENT 'Offset of the record in its partition',
    version UInt64 MATERIALIZED bitNot(bitOr(bitShiftLeft(toUInt64(toUnixTimestamp64Milli(received_at)), 22), bitOr(bitShiftLeft(bitAnd(toUInt64(kafka_partition), 255), 14), bitAnd(kafka_offset, 16383))))
        COMMENT 'Merge version, greatest for the copy received first: complement of 42 bits of received_at, 8 bits of the partition and 14 bits of the offset',
    storage_delay UInt8 DEFAULT if(received_at < now64(3) - INTERVAL 3 DAY OR user_agent = 'playline-demo', 0, toUInt8(ceil(4 * log2(greatest(2, date_diff('ms', received_at, nowInBlock64(3)))))))
        COMMENT 'Time from receipt to the insert, as a number n: at most 2^(n/4) milliseconds; 0 for imported and generated messages',
    INDEX carried_keys (identity_key, anonymous_key) TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX alias_keys (from_key, to_key) TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX message_ids message_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX receipt received_at TYPE minmax GRANULARITY 1,
    INDEX occurrence event_time TYPE minmax GRANULARITY 1
)
ENGINE = {{engine ReplacingMergeTree(version)}}
PARTITION BY toStartOfMonth(event_time)
ORDER BY (environment_id, event_name, toDate(event_time), identity_key, message_id, toUnixTimestamp64Milli(event_time), type)
SETTINGS index_granularity = 2048, min_compress_block_size = 16384, merge_selector_base = 10, min_bytes_for_wide_part = 134217728,
    non_replicated_deduplication_window = 300000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Accepted messages as written. Copies of a resent message may remain until a merge. Read events_exact or events_identified instead.';
