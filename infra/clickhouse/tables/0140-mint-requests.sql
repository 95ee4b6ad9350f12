-- What became of each asset that was asked for: one row an attempt, the one with the greatest revision is true; until a merge
-- several may stand. A reference id that failed may be asked for again, which is another attempt.
CREATE TABLE IF NOT EXISTS mint_requests
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the collection',
    requested_at DateTime64(3, 'UTC') COMMENT 'When it was accepted',
    attempt_id FixedString(16) COMMENT 'Of this acceptance: bytes of a UUID',
    reference_id String COMMENT 'What the caller calls the asset',
    revision UInt64 COMMENT '0 while only the request is known, and rises with each change',
    project_id LowCardinality(String) COMMENT 'Project that asked for it',
    environment_id LowCardinality(String) COMMENT 'Environment whose key asked for it',
    signer FixedString(20) COMMENT 'Address whose transactions mint it',
    owner FixedString(20) COMMENT 'Address that gets it',
    token_id Nullable(String) COMMENT 'Decimal digits; null while the contract has not chosen one',
    amount Nullable(String) COMMENT 'Decimal digits; null: one token of an ERC-721',
    status LowCardinality(String) COMMENT 'pending, succeeded or failed',
    stage LowCardinality(String) COMMENT 'How far a pending one is: accepted, waiting, logged, mined, reverted; settled when it is not pending',
    reason Nullable(String) COMMENT 'Why it waits, for people',
    nonce Nullable(UInt64) COMMENT 'Of the transaction that carries it',
    transaction_hash Nullable(FixedString(32)) COMMENT 'Of the transaction that carries it',
    activity_id Nullable(UUID) COMMENT 'The activity that the mint is in the history',
    error Nullable(String) COMMENT 'Why it failed, for the caller',
    changed_at DateTime64(3, 'UTC') COMMENT 'When that revision was made',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Time of the record in the log',
    kafka_partition UInt16 COMMENT 'Partition that the record stood in: of chain.mint-requests.v1 for revision 0, else of chain.mint-state.v1',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition',
    INDEX of_reference reference_id TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(revision)
ORDER BY (chain, contract, requested_at, attempt_id)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Assets to be minted. Read with FINAL, or of each attempt the row with the greatest revision'
