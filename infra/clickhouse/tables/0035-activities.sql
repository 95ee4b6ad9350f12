-- One row a version of an activity of a chain, in the order in which readers follow them: (chain, updated_at, id). The
-- writer takes updated_at from the log, so it grows within a partition, and what stands below the watermark of a
-- partition is all there is. chain, type, contract and indexed_at never change for an id, so a reader who filters by one
-- of them sees every version or none.
--
-- Small granules in small blocks: a page reads one or two of each part, and of a sparse filter one a row. The three
-- projections hold only the order for one contract, for one type, and for both; the rows are then read from the table by
-- their place. FINAL would switch them off: readers drop equal neighbours, which stand only when a block was written
-- twice, by themselves.
CREATE TABLE IF NOT EXISTS activities
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    updated_at DateTime64(6, 'UTC') COMMENT 'Place of this version among all of the chain: from the time of its record in the log, growing by at least a microsecond within a partition',
    id UUID COMMENT 'The activity; the same id again is a later version',
    indexed_at DateTime64(6, 'UTC') COMMENT 'When the activity was first indexed, as its source says; the same in every version',
    contract FixedString(20) COMMENT 'Address of the contract of its asset, of a sale that of all its assets; the same in every version',
    type LowCardinality(String) COMMENT 'mint, burn, transfer, sale, deposit or withdrawal; the same in every version',
    transaction_hash Nullable(FixedString(32)) COMMENT 'Hash of the transaction; null where nothing is known of its place on the chain',
    block_number Nullable(UInt64) COMMENT 'Number of the block; null as above',
    transaction_index Nullable(UInt64) COMMENT 'Place of the transaction in its block; null as above',
    log_index Nullable(UInt64) COMMENT 'Place of the log in its block; null where the activity has none',
    details String COMMENT 'JSON object whose members depend on the type; addresses in lower case',
    trace_id String COMMENT 'Trace of what brought it: 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'When the broker took the record',
    kafka_partition UInt16 COMMENT 'Partition of chain.activities.v1 the record stood in',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition',
    INDEX indexed_at_span indexed_at TYPE minmax GRANULARITY 1,
    PROJECTION of_contract (SELECT chain, contract, updated_at, id, indexed_at ORDER BY chain, contract, updated_at, id),
    PROJECTION of_type (SELECT chain, type, updated_at, id, indexed_at ORDER BY chain, type, updated_at, id),
    PROJECTION of_contract_and_type (SELECT chain, contract, type, updated_at, id, indexed_at ORDER BY chain, contract, type, updated_at, id)
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(updated_at)
ORDER BY (chain, updated_at, id)
SETTINGS index_granularity = 64, min_compress_block_size = 16384, max_compress_block_size = 65536, deduplicate_merge_projection_mode = 'rebuild', non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Versions of activities of chains, as the feed serves them. The latest version of each: greatest updated_at of an id'
