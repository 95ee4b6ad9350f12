-- All records of a token are in one partition of the log, so updated_at increases with each record, and the row with the greatest
-- value wins. Granules have 256 rows, because readers look up single contracts.
CREATE TABLE IF NOT EXISTS tokens
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the contract',
    updated_at DateTime64(6, 'UTC') COMMENT 'Timestamp of the Kafka record, adjusted to increase by at least one microsecond per record within a partition',
    root_contract Nullable(FixedString(20)) COMMENT 'Address on the root chain; NULL if there is none',
    symbol Nullable(String) COMMENT 'Symbol of the token; NULL when unknown',
    decimals Nullable(UInt8) COMMENT 'Number of decimals; NULL when unknown',
    image_url Nullable(String) COMMENT 'URL of the token image; NULL when unknown',
    name Nullable(String) COMMENT 'Name of the token; NULL when unknown',
    verification_status LowCardinality(String) COMMENT 'Verification status: verified, unverified, spam or inactive',
    is_canonical Bool COMMENT 'Flag that distinguishes the original token from its bridged copies',
    root_chain_id Nullable(String) COMMENT 'Id of the root chain; NULL if there is none',
    bridge_used Nullable(String) COMMENT 'Name of the bridge used for the token; NULL if there is none',
    trace_id String COMMENT 'Trace id from the source, 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Timestamp of the Kafka record',
    kafka_partition UInt16 COMMENT 'Partition of chain.tokens.v1 that contains the record',
    kafka_offset UInt64 COMMENT 'Offset of the record in its partition'
)
ENGINE = {{engine ReplacingMergeTree(updated_at)}}
ORDER BY (chain, contract)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Fungible tokens. Read with FINAL, or read the row with the greatest updated_at.';
