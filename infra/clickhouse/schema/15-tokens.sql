-- All records of a token are in one partition of the log, so updated_at grows with them, and the row with the greatest wins.
-- Granules of 256 rows: readers look up single contracts.
CREATE TABLE IF NOT EXISTS tokens
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the contract',
    updated_at DateTime64(6, 'UTC') COMMENT 'From the time of its record in the log, growing by at least a microsecond within a partition',
    root_contract Nullable(FixedString(20)) COMMENT 'Address on the root chain; null when there is none',
    symbol Nullable(String) COMMENT 'Null when not known',
    decimals Nullable(UInt8) COMMENT 'Null when not known',
    image_url Nullable(String) COMMENT 'Null when not known',
    name Nullable(String) COMMENT 'Null when not known',
    verification_status LowCardinality(String) COMMENT 'verified, unverified, spam or inactive',
    is_canonical Bool COMMENT 'Whether this is the token itself and not one of its bridged copies',
    root_chain_id Nullable(String) COMMENT 'Identifier of the root chain; null when there is none',
    bridge_used Nullable(String) COMMENT 'Bridge of the token; null when there is none',
    trace_id String COMMENT 'Trace of its source: 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Time of the record in the log',
    kafka_partition UInt16 COMMENT 'Partition of chain.tokens.v1 with the record',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition'
)
ENGINE = {{engine ReplacingMergeTree(updated_at)}}
ORDER BY (chain, contract)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Fungible tokens. Read with FINAL, or the row with the greatest updated_at.';
