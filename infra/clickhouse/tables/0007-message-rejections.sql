-- Errors of rejected messages without the messages: what was wrong and which client said it. Rows speak of no person.
--
-- Kept for 90 days: an error that a release of a game brought is looked for over the weeks in which players update, and
-- compared with the release before. Longer would only grow: whoever has a public key can make rows here. Partitions
-- of a week are dropped whole, so nothing is rewritten to forget and at most a week more stays.
CREATE TABLE IF NOT EXISTS message_rejections
(
    environment_id LowCardinality(String) COMMENT 'Environment the message was sent to',
    code LowCardinality(String) COMMENT 'What was wrong: MISSING_REQUIRED_FIELD, INVALID_ENUM and so on; the set is open',
    field LowCardinality(String) COMMENT 'Field at fault, nested ones with a dot; message for the whole message',
    surface LowCardinality(String) COMMENT 'web, pixel, unity or unreal; empty when absent or none of them',
    library LowCardinality(String) COMMENT 'First 64 characters of context.library; empty when absent or no text',
    library_version LowCardinality(String) COMMENT 'First 64 characters of context.libraryVersion; empty when absent or no text',
    received_at DateTime64(3, 'UTC') COMMENT 'When the gateway received the batch',
    trace_id String COMMENT 'Trace of the request that brought it: 32 hexadecimal digits',
    kafka_partition UInt16 COMMENT 'Partition of audience.rejections.v1 the record stood in',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition',
    INDEX of_trace trace_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree
PARTITION BY toMonday(received_at)
ORDER BY (environment_id, code, field, received_at, kafka_partition, kafka_offset)
TTL toDateTime(received_at) + INTERVAL 90 DAY DELETE
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 100000
COMMENT 'One row an error of a rejected message. A sample: under load the gateway leaves errors out rather than slow down.'
