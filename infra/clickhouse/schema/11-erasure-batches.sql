-- The deletes of a batch read identities from this table, because the list is too long for a statement and because ClickHouse
-- retains statements in its own logs. Each batch is a partition and is dropped as a whole, so none of its rows remains on disk.
CREATE TABLE IF NOT EXISTS erasure_targets
(
    batch_id UUID COMMENT 'Batch of erasures that are executed together',
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'Cut-off of the identity; the latest one if several erasures include the identity'
)
ENGINE = {{engine ReplacingMergeTree(cutoff_at)}}
PARTITION BY batch_id
ORDER BY (environment_id, identity_key)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Identities whose rows are being deleted. Empty when no erasure is running.';

-- Part and offset of each row of a batch. A delete by part and offset reads no other column, whereas a delete by key reads keys
-- and times in every affected part (infra/decisions/0009-rows-of-a-person.md). A location is valid until its part is merged or
-- mutated. Part names are never reused, so an outdated location matches no row.
CREATE TABLE IF NOT EXISTS erasure_found
(
    batch_id UUID COMMENT 'Batch of erasures that are executed together',
    table_name LowCardinality(String) COMMENT 'Table that contains the row',
    column_name LowCardinality(String) COMMENT 'Column that contains the identity',
    how LowCardinality(String) COMMENT 'Type of the match: own for a row to delete; carried for a row of another person that also contains the identity',
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    part String COMMENT 'Part that contains the row',
    part_offset UInt64 COMMENT 'Offset of the row in the part'
)
ENGINE = {{engine MergeTree}}
PARTITION BY (batch_id, table_name)
ORDER BY (how, part, part_offset)
COMMENT 'Locations of rows that are being deleted. Empty when no erasure is running.';

-- Used by an eraser that takes over from a crashed eraser. Rows are written before anything is fenced or deleted, because
-- afterwards no other table contains the person's identities. Each batch is a partition, dropped when its holds end.
CREATE TABLE IF NOT EXISTS erasure_progress
(
    batch_id UUID COMMENT 'Batch of erasures that are executed together',
    erasure_id UUID COMMENT 'Erasure id returned by the gateway in the header x-erasure-id',
    environment_id LowCardinality(String) COMMENT 'Environment of the person',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'Cut-off; the latest one of all erasures of the person in the batch',
    closure_keys Array(FixedString(16)) COMMENT 'Keyed hashes of all identities of the person',
    deleted Map(LowCardinality(String), UInt64) COMMENT 'Number of rows and values found so far per store and table, for example clickhouse.events',
    noted_at DateTime64(3, 'UTC') MATERIALIZED now64(3, 'UTC') COMMENT 'Time when the row was written; the latest row applies'
)
ENGINE = {{engine ReplacingMergeTree(noted_at)}}
PARTITION BY batch_id
ORDER BY (batch_id, erasure_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Erasures in progress. Empty when no erasure is running.';
