-- One row per attempt; the row with the greatest revision wins. After a failed attempt, the reference id can be requested
-- again, which creates another attempt. Sorting key: readers page through a contract's requests by time, in granules of 256 rows. of_reference finds a
-- request by its reference id.
CREATE TABLE IF NOT EXISTS mint_requests
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the collection',
    requested_at DateTime64(3, 'UTC') COMMENT 'Time when the request was accepted',
    attempt_id FixedString(16) COMMENT 'Attempt id, the bytes of a UUID',
    reference_id String COMMENT 'Asset id chosen by the caller',
    revision UInt64 COMMENT 'Revision of the state: 0 for the request, incremented by each change',
    project_id LowCardinality(String) COMMENT 'Project that requested the mint',
    environment_id LowCardinality(String) COMMENT 'Environment of the key that requested the mint',
    signer FixedString(20) COMMENT 'Address that signs the mint transaction',
    owner FixedString(20) COMMENT 'Address that receives the asset',
    token_id Nullable(String) COMMENT 'Token id in decimal digits; NULL until the contract assigns one',
    amount Nullable(String) COMMENT 'Amount in decimal digits; NULL for an ERC-721 token',
    status LowCardinality(String) COMMENT 'Status of the attempt: pending, succeeded or failed',
    stage LowCardinality(String) COMMENT 'Stage of a pending request: accepted, waiting, logged, mined or reverted; settled for other requests',
    reason Nullable(String) COMMENT 'Message that explains why the request is waiting',
    nonce Nullable(UInt64) COMMENT 'Nonce of the mint transaction',
    transaction_hash Nullable(FixedString(32)) COMMENT 'Hash of the mint transaction',
    activity_id Nullable(UUID) COMMENT 'Id of the mint activity in the feed',
    error Nullable(String) COMMENT 'Error message returned to the caller',
    changed_at DateTime64(3, 'UTC') COMMENT 'Time when the revision was created',
    trace_id String COMMENT 'Trace id of the request, 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Timestamp of the Kafka record',
    kafka_partition UInt16 COMMENT 'Partition that contains the record: in chain.mint-requests.v1 for revision 0, otherwise in chain.mint-state.v1',
    kafka_offset UInt64 COMMENT 'Offset of the record in its partition',
    INDEX of_reference reference_id TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {{engine ReplacingMergeTree(revision)}}
ORDER BY (chain, contract, requested_at, attempt_id)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Mint requests, one row per attempt. Read with FINAL, or read the row with the greatest revision of each attempt.';

-- One row per attempt, sorted like mint_requests. The states of an attempt do not repeat its metadata.
CREATE TABLE IF NOT EXISTS mint_metadata
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the collection',
    requested_at DateTime64(3, 'UTC') COMMENT 'Time when the request was accepted',
    attempt_id FixedString(16) COMMENT 'Attempt id, the bytes of a UUID, as in mint_requests',
    project_id LowCardinality(String) COMMENT 'Project that requested the asset',
    environment_id LowCardinality(String) COMMENT 'Environment of the key that requested the mint',
    metadata Nullable(String) COMMENT 'Metadata from the request, a JSON object; NULL if the request had none',
    trace_id String COMMENT 'Trace id of the request, 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Timestamp of the Kafka record',
    kafka_partition UInt16 COMMENT 'Partition of chain.mint-requests.v1 that contains the record',
    kafka_offset UInt64 COMMENT 'Offset of the record in its partition'
)
ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (chain, contract, requested_at, attempt_id)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Metadata of requested assets, one row per attempt.';
