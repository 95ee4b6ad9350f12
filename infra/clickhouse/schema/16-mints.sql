-- One row for each attempt; the row with the greatest revision wins. A failed reference id can be requested again, which is
-- another attempt. Sorting key: readers page through the requests of a contract by time, in granules of 256 rows. of_reference
-- finds a request by its reference id.
CREATE TABLE IF NOT EXISTS mint_requests
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the collection',
    requested_at DateTime64(3, 'UTC') COMMENT 'When the request was accepted',
    attempt_id FixedString(16) COMMENT 'Id of the attempt: bytes of a UUID',
    reference_id String COMMENT 'Id of the asset from the caller',
    revision UInt64 COMMENT '0 while only the request is known; grows with each change',
    project_id LowCardinality(String) COMMENT 'Project that requested it',
    environment_id LowCardinality(String) COMMENT 'Environment whose key requested it',
    signer FixedString(20) COMMENT 'Address whose transaction mints it',
    owner FixedString(20) COMMENT 'Address that receives it',
    token_id Nullable(String) COMMENT 'Decimal digits; null while the contract has not chosen one',
    amount Nullable(String) COMMENT 'Decimal digits; null: one token of an ERC-721',
    status LowCardinality(String) COMMENT 'pending, succeeded or failed',
    stage LowCardinality(String) COMMENT 'Stage of a pending request: accepted, waiting, logged, mined or reverted; settled when it is not pending',
    reason Nullable(String) COMMENT 'Why it waits, as text',
    nonce Nullable(UInt64) COMMENT 'Nonce of its transaction',
    transaction_hash Nullable(FixedString(32)) COMMENT 'Hash of its transaction',
    activity_id Nullable(UUID) COMMENT 'Activity of the mint in the feed',
    error Nullable(String) COMMENT 'Why it failed, as the caller reads it',
    changed_at DateTime64(3, 'UTC') COMMENT 'When the revision was created',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Time of the record in the log',
    kafka_partition UInt16 COMMENT 'Partition with the record: of chain.mint-requests.v1 for revision 0, else of chain.mint-state.v1',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition',
    INDEX of_reference reference_id TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {{engine ReplacingMergeTree(revision)}}
ORDER BY (chain, contract, requested_at, attempt_id)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Requests to mint assets. Read with FINAL, or of each attempt the row with the greatest revision.';

-- One row for each attempt, in the order of mint_requests. The states of an attempt do not repeat its metadata.
CREATE TABLE IF NOT EXISTS mint_metadata
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the collection',
    requested_at DateTime64(3, 'UTC') COMMENT 'When the request was accepted',
    attempt_id FixedString(16) COMMENT 'Id of the attempt: bytes of a UUID, as in mint_requests',
    project_id LowCardinality(String) COMMENT 'Project that requested the asset',
    environment_id LowCardinality(String) COMMENT 'Environment whose key requested it',
    metadata Nullable(String) COMMENT 'JSON object of the request; null: the request had none',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Time of the record in the log',
    kafka_partition UInt16 COMMENT 'Partition of chain.mint-requests.v1 with the record',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition'
)
ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (chain, contract, requested_at, attempt_id)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Metadata of assets to be minted, by attempt.';
