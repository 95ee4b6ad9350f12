-- The order in which readers follow a chain. The writer derives updated_at from the log, so it grows within a partition, and no
-- row is added below the watermark of a partition. chain, type, contract and indexed_at never change for an id, so a filter by
-- one of them returns every version or none. Small granules and compressed blocks: a query for few rows unpacks little. A block
-- has versions of up to three months, which is why the table remembers as many tokens as events.
CREATE TABLE IF NOT EXISTS activities
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    updated_at DateTime64(6, 'UTC') COMMENT 'Position of this version in the chain: from the time of its record in the log, growing by at least a microsecond within a partition',
    id UUID COMMENT 'The activity; the same id again is a later version',
    indexed_at DateTime64(6, 'UTC') COMMENT 'When the activity was first indexed, as stated by its source; the same in every version',
    contract FixedString(20) COMMENT 'Address of the contract of its asset, of a sale that of all its assets; the same in every version',
    type LowCardinality(String) COMMENT 'mint, burn, transfer, sale, deposit or withdrawal; the same in every version',
    transaction_hash Nullable(FixedString(32)) COMMENT 'Hash of the transaction; null when its position on the chain is unknown',
    block_number Nullable(UInt64) COMMENT 'Number of the block; null with transaction_hash',
    transaction_index Nullable(UInt64) COMMENT 'Position of the transaction in its block; null with transaction_hash',
    log_index Nullable(UInt64) COMMENT 'Position of the log in its block; null when the activity has none',
    details String COMMENT 'JSON object whose members depend on the type; addresses in lower case',
    trace_id String COMMENT 'Trace of its source: 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Time of the record in the log',
    kafka_partition UInt16 COMMENT 'Partition of chain.activities.v1 with the record',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition'
)
ENGINE = {{engine ReplacingMergeTree}}
PARTITION BY toYYYYMM(updated_at)
ORDER BY (chain, updated_at, id)
SETTINGS index_granularity = 64, min_compress_block_size = 16384, max_compress_block_size = 65536, non_replicated_deduplication_window = 300000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Versions of activities of chains, whole, in the order of the log. The latest version of an id has the greatest updated_at.';
