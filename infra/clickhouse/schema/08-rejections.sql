-- Rows do not identify a person, so the gateway records only libraries that its settings name. Sorting key: queries count the
-- errors of an environment by code and field. of_trace finds the errors of a request, because a developer who misses a message
-- has the trace id of the answer.
--
-- Kept for 90 days: an error that a release of a game introduced is searched for over the weeks in which players update. Not
-- longer, because anybody with a public key can cause rows here. A partition of a week is dropped as a whole, so no part is
-- rewritten to delete rows. A block has rejections of up to three weeks, which is why it remembers as many tokens as events.
CREATE TABLE IF NOT EXISTS message_rejections
(
    environment_id LowCardinality(String) COMMENT 'Environment the message was sent to',
    code LowCardinality(String) COMMENT 'Error code: MISSING_REQUIRED_FIELD, INVALID_ENUM and so on; more may be added',
    field LowCardinality(String) COMMENT 'Field with the error, nested ones with a dot; message: the whole message',
    surface LowCardinality(String) COMMENT 'web, pixel, unity or unreal; empty when absent or another value',
    library LowCardinality(String) COMMENT 'context.library if CLIENT_LIBRARIES of the gateway has it, else other; empty when absent or not a string',
    library_version LowCardinality(String) COMMENT 'context.libraryVersion if it has digits and dots only, else empty',
    received_at DateTime64(3, 'UTC') COMMENT 'When the gateway received the batch',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    kafka_partition UInt16 COMMENT 'Partition of audience.rejections.v1 with the record',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition',
    INDEX of_trace trace_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = {{engine ReplacingMergeTree}}
PARTITION BY toMonday(received_at)
ORDER BY (environment_id, code, field, received_at, kafka_partition, kafka_offset)
TTL toDateTime(received_at) + INTERVAL 90 DAY DELETE
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 300000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Errors of rejected messages, one row each. A sample: under load the gateway omits errors.';

CREATE VIEW IF NOT EXISTS analysis_rejections DEFINER = views SQL SECURITY DEFINER AS
SELECT environment_id, code, field, surface, library, library_version, received_at, trace_id
FROM message_rejections FINAL
COMMENT 'Errors of rejected messages of the last 90 days, one row each. A sample: under load errors are omitted.';

ALTER TABLE analysis_rejections {{comments of message_rejections}};
