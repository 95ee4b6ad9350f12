-- The three tables of metadata supplied by teams. All records of a contract are in one partition of the log, so updated_at
-- increases with each record, and the row with the greatest value wins. Granules have 256 rows, because readers look up single
-- tokens.
CREATE TABLE IF NOT EXISTS collections
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the collection',
    updated_at DateTime64(6, 'UTC') COMMENT 'Timestamp of the Kafka record, adjusted to increase by at least one microsecond per record within a partition',
    project_id LowCardinality(String) COMMENT 'Project that supplied the metadata',
    environment_id LowCardinality(String) COMMENT 'Environment of the key that supplied the metadata',
    metadata String COMMENT 'Metadata as supplied, a JSON object',
    requested_at DateTime64(3, 'UTC') COMMENT 'Time when the metadata was supplied',
    trace_id String COMMENT 'Trace id of the request, 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Timestamp of the Kafka record',
    kafka_partition UInt16 COMMENT 'Partition of chain.metadata.v1 that contains the record',
    kafka_offset UInt64 COMMENT 'Offset of the record in its partition'
)
ENGINE = {{engine ReplacingMergeTree(updated_at)}}
ORDER BY (chain, contract)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Collection metadata. Read with FINAL, or read the row with the greatest updated_at.';

CREATE TABLE IF NOT EXISTS nft_metadata
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the collection',
    token_id String COMMENT 'Token id in decimal digits',
    updated_at DateTime64(6, 'UTC') COMMENT 'Timestamp of the Kafka record, adjusted to increase by at least one microsecond per record within a partition',
    project_id LowCardinality(String) COMMENT 'Project that supplied the metadata',
    environment_id LowCardinality(String) COMMENT 'Environment of the key that supplied the metadata',
    metadata String COMMENT 'Metadata as supplied, a JSON object',
    requested_at DateTime64(3, 'UTC') COMMENT 'Time when the metadata was supplied',
    trace_id String COMMENT 'Trace id of the request, 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Timestamp of the Kafka record',
    kafka_partition UInt16 COMMENT 'Partition of chain.metadata.v1 that contains the record',
    kafka_offset UInt64 COMMENT 'Offset of the record in its partition'
)
ENGINE = {{engine ReplacingMergeTree(updated_at)}}
ORDER BY (chain, contract, token_id)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'NFT metadata. Read with FINAL, or read the row with the greatest updated_at.';

CREATE TABLE IF NOT EXISTS metadata_stacks
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'Address of the collection',
    metadata_id String COMMENT 'Metadata id, a UUID',
    updated_at DateTime64(6, 'UTC') COMMENT 'Timestamp of the Kafka record, adjusted to increase by at least one microsecond per record within a partition',
    project_id LowCardinality(String) COMMENT 'Project that supplied the metadata',
    environment_id LowCardinality(String) COMMENT 'Environment of the key that supplied the metadata',
    metadata String COMMENT 'Metadata as supplied, a JSON object',
    requested_at DateTime64(3, 'UTC') COMMENT 'Time when the metadata was supplied',
    trace_id String COMMENT 'Trace id of the request, 32 hexadecimal digits',
    logged_at DateTime64(3, 'UTC') COMMENT 'Timestamp of the Kafka record',
    kafka_partition UInt16 COMMENT 'Partition of chain.metadata.v1 that contains the record',
    kafka_offset UInt64 COMMENT 'Offset of the record in its partition'
)
ENGINE = {{engine ReplacingMergeTree(updated_at)}}
ORDER BY (chain, contract, metadata_id)
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Metadata of stacks, which is shared by several tokens. Read with FINAL, or read the row with the greatest updated_at.';
