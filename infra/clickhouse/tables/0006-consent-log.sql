-- Every change of a tracking consent. The sorting key is the place in the log, so a block written twice folds into one
-- and no change is ever folded into another. All changes of an identity stand next to each other, and in the order of
-- the log, which says what is true. Small granules: a look-up of one identity reads 512 rows instead of 8,192.
CREATE TABLE IF NOT EXISTS consent_log
(
    environment_id LowCardinality(String) COMMENT 'Environment the consent was given in',
    identity_key FixedString(16) COMMENT 'Keyed hash of the anonymous id',
    status LowCardinality(String) COMMENT 'none, anonymous or full',
    source LowCardinality(String) COMMENT 'Where the client says the consent was given',
    received_at DateTime64(3, 'UTC') COMMENT 'When the gateway accepted the change',
    logged_at DateTime64(3, 'UTC') COMMENT 'When the broker took it, by the clock of the log; decides between partitions only',
    trace_id String COMMENT 'Trace of the request that brought it: 32 hexadecimal digits',
    kafka_partition UInt16 COMMENT 'Partition of audience.consents.v1 the record stood in',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition; of two changes in one partition the greater is true'
)
ENGINE = ReplacingMergeTree
ORDER BY (environment_id, identity_key, kafka_partition, kafka_offset)
SETTINGS index_granularity = 512, non_replicated_deduplication_window = 100000
COMMENT 'History of tracking consents. What is true now stands in consents_current.'
