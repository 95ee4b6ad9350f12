-- Whom the deletes of one batch are about. The lists stand in a table because they are too long for a statement, and so
-- that no statement, nor the logs that keep it, holds a key. A batch is a partition, and is dropped as a whole when it is
-- done: no row of it stays on the disk.
CREATE TABLE IF NOT EXISTS erasure_targets
(
    batch_id UUID COMMENT 'Batch of erasures that are done together',
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'Its rows up to here are erased; of several the latest'
)
ENGINE = ReplacingMergeTree(cutoff_at)
PARTITION BY batch_id
ORDER BY (environment_id, identity_key)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Identities whose rows are deleted now. Empty when no erasure runs.'
