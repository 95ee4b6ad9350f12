-- The three tables of metadata that teams supply. All records of a contract are in one partition of the log, so updated_at grows
-- with them, and the row with the greatest wins. Granules of 256 rows: readers look up single tokens.
CREATE TABLE IF NOT EXISTS collections
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the collection',
    updated_at DateTime64(6, 'UTC') COMMENT 'From the time of its record in the log, growing by at least a microsecond within a partition',
    project_id LowCardinality(String) COMMENT 'Project that supplied it',
    environment_id LowCardinality(String) COMMENT 'Environment whose key supplied it',
    metadata String COMMENT 'JSON object as supplied',
    requested_at DateTime64(3, 'UTC') COMMENT 'When it was supplied',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Time of the record in the log',
    kafka_partition UInt16 COMMENT 'Partition of chain.metadata.v1 with the record',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition'
)
ENGINE = {{engine ReplacingMergeTree(updated_at)}}
ORDER BY (chain, contract)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Metadata of collections. Read with FINAL, or the row with the greatest updated_at.';

CREATE TABLE IF NOT EXISTS nft_metadata
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the collection',
    token_id String COMMENT 'Decimal digits',
    updated_at DateTime64(6, 'UTC') COMMENT 'From the time of its record in the log, growing by at least a microsecond within a partition',
    project_id LowCardinality(String) COMMENT 'Project that supplied it',
    environment_id LowCardinality(String) COMMENT 'Environment whose key supplied it',
    metadata String COMMENT 'JSON object as supplied',
    requested_at DateTime64(3, 'UTC') COMMENT 'When it was supplied',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Time of the record in the log',
    kafka_partition UInt16 COMMENT 'Partition of chain.metadata.v1 with the record',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition'
)
ENGINE = {{engine ReplacingMergeTree(updated_at)}}
ORDER BY (chain, contract, token_id)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Metadata of tokens. Read with FINAL, or the row with the greatest updated_at.';

CREATE TABLE IF NOT EXISTS metadata_stacks
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the collection',
    metadata_id String COMMENT 'UUID',
    updated_at DateTime64(6, 'UTC') COMMENT 'From the time of its record in the log, growing by at least a microsecond within a partition',
    project_id LowCardinality(String) COMMENT 'Project that supplied it',
    environment_id LowCardinality(String) COMMENT 'Environment whose key supplied it',
    metadata String COMMENT 'JSON object as supplied',
    requested_at DateTime64(3, 'UTC') COMMENT 'When it was supplied',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Time of the record in the log',
    kafka_partition UInt16 COMMENT 'Partition of chain.metadata.v1 with the record',
    kafka_offset UInt64 COMMENT 'Offset of the record within its partition'
)
ENGINE = {{engine ReplacingMergeTree(updated_at)}}
ORDER BY (chain, contract, metadata_id)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Metadata of stacks, which several tokens share. Read with FINAL, or the row with the greatest updated_at.';
