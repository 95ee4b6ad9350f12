-- Metadata of assets that were asked to be minted: one row an attempt. Its states do not repeat it.
CREATE TABLE IF NOT EXISTS mint_metadata
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the collection',
    requested_at DateTime64(3, 'UTC') COMMENT 'When the asset was accepted',
    attempt_id FixedString(16) COMMENT 'Of this acceptance: bytes of a UUID, as in mint_requests',
    project_id LowCardinality(String) COMMENT 'Project that requested the asset',
    environment_id LowCardinality(String) COMMENT 'Environment whose key requested it',
    metadata Nullable(String) COMMENT 'JSON object of the request; null: the request had none',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Time of the record in the log',
    kafka_partition UInt16 COMMENT 'Partition of chain.mint-requests.v1 that has the record',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition'
)
ENGINE = ReplacingMergeTree
ORDER BY (chain, contract, requested_at, attempt_id)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Metadata of assets to be minted, by attempt'
