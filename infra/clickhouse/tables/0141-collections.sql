-- The metadata that a team gave its collections. All records of a contract stand in one partition of the log, so updated_at grows with them and the greatest is
-- true; until a merge several may stand.
CREATE TABLE IF NOT EXISTS collections
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the collection',
    updated_at DateTime64(6, 'UTC') COMMENT 'From the time of its record in the log, growing by at least a microsecond within a partition',
    project_id LowCardinality(String) COMMENT 'Project that gave it',
    environment_id LowCardinality(String) COMMENT 'Environment whose key gave it',
    metadata String COMMENT 'JSON object, as it was given',
    requested_at DateTime64(3, 'UTC') COMMENT 'When it was given',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Time of the record in the log',
    kafka_partition UInt16 COMMENT 'Partition of chain.metadata.v1 the record stood in',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition'
)
ENGINE = ReplacingMergeTree(updated_at)
ORDER BY (chain, contract)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Metadata of collections. Read with FINAL, or the row with the greatest updated_at'
