-- Sorting key: all changes of an identity are together in the order of the log, which decides which one is current. A block that
-- is written twice folds, and a change never folds into another. Granules of 512 rows: a query for one identity reads 512 rows
-- instead of 8,192.
CREATE TABLE IF NOT EXISTS consent_log
(
    environment_id LowCardinality(String) COMMENT 'Environment the consent was given in',
    identity_key FixedString(16) COMMENT 'Keyed hash of the anonymous id',
    status LowCardinality(String) COMMENT 'none, anonymous or full',
    source LowCardinality(String) COMMENT 'Where the consent was given, as stated by the client',
    received_at DateTime64(3, 'UTC') COMMENT 'When the gateway accepted the change',
    logged_at DateTime64(3, 'UTC') COMMENT 'Time of the record in the log; decides between partitions only',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    kafka_partition UInt16 COMMENT 'Partition of audience.consents.v1 with the record',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition; of two changes in one partition the greater applies'
)
ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (environment_id, identity_key, kafka_partition, kafka_offset)
SETTINGS index_granularity = 512, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Changes of tracking consents. The current ones are in consents_current.';

-- Within a partition the later offset wins, regardless of clocks. An identity has changes in a second partition only when
-- partitions were added to the topic; then the time of the log decides between the two.
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
COMMENT 'Current tracking consent of each identity. An identity without a row has the status not_set.';

ALTER TABLE consents_current {{comments of consent_log}};
