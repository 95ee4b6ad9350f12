-- Sorting key: all changes of an identity are adjacent and in log order, which determines the current consent. A block that is
-- written twice is deduplicated, and different changes are never merged. With granules of 512 rows, a query for one identity
-- reads 512 rows instead of 8,192.
CREATE TABLE IF NOT EXISTS consent_log
(
    environment_id LowCardinality(String) COMMENT 'Environment in which the consent was given',
    identity_key FixedString(16) COMMENT 'Keyed hash of the anonymous id',
    status LowCardinality(String) COMMENT 'Consent status: none, anonymous or full',
    source LowCardinality(String) COMMENT 'Location in the product where the consent was given, as reported by the client',
    received_at DateTime64(3, 'UTC') COMMENT 'Time when the gateway accepted the change',
    logged_at DateTime64(3, 'UTC') COMMENT 'Timestamp of the Kafka record; used only to order changes from different partitions',
    trace_id String COMMENT 'Trace id of the request, 32 hexadecimal digits',
    kafka_partition UInt16 COMMENT 'Partition of audience.consents.v1 that contains the record',
    kafka_offset UInt64 COMMENT 'Offset of the record in its partition; the greatest offset in a partition applies'
)
ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (environment_id, identity_key, kafka_partition, kafka_offset)
SETTINGS index_granularity = 512, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Changes to tracking consents. consents_current contains the current consents.';

-- Within a partition the latest offset wins, regardless of clocks. An identity has changes in two partitions only if partitions
-- were added to the topic; then the Kafka timestamp decides.
CREATE VIEW IF NOT EXISTS consents_current SQL SECURITY INVOKER AS
SELECT
    environment_id,
    identity_key,
    tupleElement(latest, 1) AS status,
    tupleElement(latest, 2) AS source,
    tupleElement(latest, 3) AS received_at,
    tupleElement(latest, 4) AS logged_at,
    tupleElement(latest, 5) AS trace_id
FROM
(
    SELECT environment_id, identity_key, argMax(last_change, (tupleElement(last_change, 4), kafka_partition)) AS latest
    FROM
    (
        SELECT
            environment_id,
            identity_key,
            kafka_partition,
            argMax((status, source, received_at, logged_at, trace_id), kafka_offset) AS last_change
        FROM consent_log
        GROUP BY environment_id, identity_key, kafka_partition
    )
    GROUP BY environment_id, identity_key
)
COMMENT 'Current tracking consent of each identity. The status of an identity without a row is not_set.';

ALTER TABLE consents_current {{comments of consent_log}};
