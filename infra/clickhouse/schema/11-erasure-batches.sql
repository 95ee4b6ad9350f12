-- The deletes of a batch read identities from this table, because the list is too long for a statement, and because a statement is
-- kept in ClickHouse's own logs. A batch is a partition and is dropped as a whole, so none of its rows stays on the disk.
CREATE TABLE IF NOT EXISTS erasure_targets
(
    batch_id UUID COMMENT 'Batch of erasures that run together',
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'Its rows up to this time are erased; of several the latest'
)
ENGINE = {{engine ReplacingMergeTree(cutoff_at)}}
PARTITION BY batch_id
ORDER BY (environment_id, identity_key)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Identities whose rows are being deleted. Empty when no erasure runs.';

-- Part and offset of each row of a batch. A delete by part and offset reads no other column, while a delete by key reads keys
-- and times in every part that it touches (infra/decisions/0009-rows-of-a-person.md). A location is valid until its part is
-- merged or changed, and matches no row afterwards, because a name of a part is never used again.
CREATE TABLE IF NOT EXISTS erasure_found
(
    batch_id UUID COMMENT 'Batch of erasures that run together',
    table_name LowCardinality(String) COMMENT 'Table of the row',
    column_name LowCardinality(String) COMMENT 'Column with the identity',
    how LowCardinality(String) COMMENT 'own: the row is deleted; carried: it belongs to another person',
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    part String COMMENT 'Part of the table with the row',
    part_offset UInt64 COMMENT 'Offset of the row within the part'
)
ENGINE = {{engine MergeTree}}
PARTITION BY (batch_id, table_name)
ORDER BY (how, part, part_offset)
COMMENT 'Locations of rows that are being deleted. Empty when no erasure runs.';

-- For an eraser that takes over from one that crashed. Written before anything is fenced or deleted, because afterwards no
-- other table has the identities of the person. A batch is a partition, dropped as a whole when its holds end.
CREATE TABLE IF NOT EXISTS erasure_progress
(
    batch_id UUID COMMENT 'Batch of erasures that run together',
    erasure_id UUID COMMENT 'Id from the gateway: header x-erasure-id',
    environment_id LowCardinality(String) COMMENT 'Environment of the person',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'Rows with a time up to this one are erased; the latest of all erasures of this person in the batch',
    closure_keys Array(FixedString(16)) COMMENT 'Keyed hashes of every identity of the person',
    deleted Map(LowCardinality(String), UInt64) COMMENT 'Rows and values found so far, by store and table, for example clickhouse.events',
    noted_at DateTime64(3, 'UTC') MATERIALIZED now64(3, 'UTC') COMMENT 'Of two rows the later one applies'
)
ENGINE = {{engine ReplacingMergeTree(noted_at)}}
PARTITION BY batch_id
ORDER BY (batch_id, erasure_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Erasures in progress. Empty when no erasure runs.';
