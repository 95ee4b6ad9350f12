-- How far the erasures of a batch are, for an eraser that takes over from one that died. Written before anything is fenced
-- or deleted: from then on nothing else tells who belonged to the person. A batch is a partition, and is dropped as a whole
-- when its holds are released.
CREATE TABLE IF NOT EXISTS erasure_progress
(
    batch_id UUID COMMENT 'Batch of erasures that are done together',
    erasure_id UUID COMMENT 'Given by the gateway: header x-erasure-id',
    environment_id LowCardinality(String) COMMENT 'Environment of the person',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'What happened or was received up to here is erased; the latest of all erasures of this person in the batch',
    closure_keys Array(FixedString(16)) COMMENT 'Keyed hashes of every identity of the person',
    deleted Map(LowCardinality(String), UInt64) COMMENT 'Store and place, as clickhouse.events: what was found there to be deleted or blanked, so far',
    noted_at DateTime64(3, 'UTC') MATERIALIZED now64(3, 'UTC') COMMENT 'Of two copies the later one is true'
)
ENGINE = ReplacingMergeTree(noted_at)
PARTITION BY batch_id
ORDER BY (batch_id, erasure_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Erasures that are done now. Empty when no erasure runs.'
