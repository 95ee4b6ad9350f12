-- Rows must not identify a person, so the gateway records only library names from its settings. Sorting key: queries count an
-- environment's errors by code and field. of_trace finds a request's errors: to find a missing message, a developer takes the
-- trace id from the response.
--
-- Rows are retained for 90 days, because players update a faulty game release over several weeks. Retention is not longer,
-- because anyone with a publishable key can create rows here. Partitions are dropped weekly, so no part is rewritten to delete
-- rows. A block contains rejections from up to three weeks, so the deduplication window is as large as that of events.
CREATE TABLE IF NOT EXISTS message_rejections
(
    environment_id LowCardinality(String) COMMENT 'Environment the message was sent to',
    code LowCardinality(String) COMMENT 'Error code, for example MISSING_REQUIRED_FIELD or INVALID_ENUM; new codes may be added',
    field LowCardinality(String) COMMENT 'Path of the invalid field, with dots for nested fields; message for errors of the whole message',
    surface LowCardinality(String) COMMENT 'Surface of the client: web, pixel, unity or unreal; empty when absent or invalid',
    library LowCardinality(String) COMMENT 'context.library if listed in CLIENT_LIBRARIES of the gateway, else other; empty when absent or not a string',
    library_version LowCardinality(String) COMMENT 'context.libraryVersion if it consists of digits and dots, else empty',
    received_at DateTime64(3, 'UTC') COMMENT 'Time when the gateway received the batch',
    trace_id String COMMENT 'Trace id of the request, 32 hexadecimal digits',
    kafka_partition UInt16 COMMENT 'Partition of audience.rejections.v1 that contains the record',
    kafka_offset UInt64 COMMENT 'Offset of the record in its partition',
    INDEX of_trace trace_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = {{engine ReplacingMergeTree}}
PARTITION BY toMonday(received_at)
ORDER BY (environment_id, code, field, received_at, kafka_partition, kafka_offset)
TTL toDateTime(received_at) + INTERVAL 90 DAY DELETE
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 300000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Validation errors of rejected messages, one row per error. A sample, because the gateway omits errors under load.';

CREATE VIEW IF NOT EXISTS analysis_rejections DEFINER = views SQL SECURITY DEFINER AS
SELECT environment_id, code, field, surface, library, library_version, received_at, trace_id
FROM message_rejections FINAL
COMMENT 'Validation errors of rejected messages from the last 90 days, one row per error. A sample, because the gateway omits errors under load.';

ALTER TABLE analysis_rejections {{comments of message_rejections}};
