-- Rows are in the order in which readers follow a chain. The writer derives updated_at from the log, so the value increases
-- within a partition, and no row is added below a partition's watermark. chain, type, contract and indexed_at never change for
-- an id, so filtering by one of these columns returns all versions or none. Granules and compressed blocks are small, so a
-- query for a few rows decompresses little. A block contains versions from up to three months, so the deduplication window is
-- as large as that of events.
CREATE TABLE IF NOT EXISTS activities
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    updated_at DateTime64(6, 'UTC') COMMENT 'Position of the version in the feed: timestamp of the Kafka record, adjusted to increase by at least one microsecond per record within a partition',
    id UUID COMMENT 'Activity id, shared by all versions of the activity',
    indexed_at DateTime64(6, 'UTC') COMMENT 'Time when the activity was first indexed, as reported by the source; the same in every version',
    contract FixedString(20) COMMENT 'Contract address of the asset, or of all assets of a sale; the same in every version',
    type LowCardinality(String) COMMENT 'Type of the activity: mint, burn, transfer, sale, deposit or withdrawal; the same in every version',
    transaction_hash Nullable(FixedString(32)) COMMENT 'Hash of the transaction; NULL when the position on the chain is unknown',
    block_number Nullable(UInt64) COMMENT 'Number of the chain block; NULL if transaction_hash is NULL',
    transaction_index Nullable(UInt64) COMMENT 'Index of the transaction in the chain block; NULL if transaction_hash is NULL',
    log_index Nullable(UInt64) COMMENT 'Index of the log in the chain block; NULL for activities without a log',
    details String COMMENT 'Details as a JSON object whose members depend on the type; addresses in lower case',
    trace_id String COMMENT 'Trace id from the source, 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Timestamp of the Kafka record',
    kafka_partition UInt16 COMMENT 'Partition of chain.activities.v1 that contains the record',
    kafka_offset UInt64 COMMENT 'Offset of the record in its partition'
)
ENGINE = {{engine ReplacingMergeTree}}
PARTITION BY toYYYYMM(updated_at)
ORDER BY (chain, updated_at, id)
SETTINGS index_granularity = 64, min_compress_block_size = 16384, max_compress_block_size = 65536, non_replicated_deduplication_window = 300000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Complete versions of chain activities, in log order. The latest version of an activity has the greatest updated_at.';
