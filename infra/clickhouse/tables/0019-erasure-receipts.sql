-- What was erased, when, and how it was checked. Written when rows are visibly gone and again with each time that comes
-- later, so the copy that knows most is true. No identity key: the hash says whether a list of keys is the one.
CREATE TABLE IF NOT EXISTS erasure_receipts
(
    erasure_id UUID COMMENT 'Given by the gateway: header x-erasure-id',
    environment_id LowCardinality(String) COMMENT 'Environment of the person',
    closure_hash FixedString(32) COMMENT 'SHA-256 of the identity keys of the person, 16 bytes each, in the order of their bytes',
    closure_count UInt32 COMMENT 'How many identities the person had',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'What happened or was received up to here was erased',
    accepted_at DateTime64(3, 'UTC') COMMENT 'When the gateway accepted the request',
    fenced_at DateTime64(3, 'UTC') COMMENT 'When every identity was fenced',
    visibly_erased_at DateTime64(3, 'UTC') COMMENT 'When no query found a row any more',
    physically_erased_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When no row stood on the disk of this store any more; null until then',
    log_expires_at DateTime64(3, 'UTC') COMMENT 'When the log will hold nothing of it at the latest',
    log_expired_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When every partition of the log began behind log_ends; null until then',
    deleted Map(LowCardinality(String), UInt64) COMMENT 'Store and place, as clickhouse.events: what was deleted or blanked there',
    verified Map(LowCardinality(String), UInt64) COMMENT 'Store and place: what was counted afterwards; zero everywhere',
    log_ends Map(String, UInt64) COMMENT 'Topic/partition: end of the log when the fences stood',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    version UInt8 MATERIALIZED 1 + isNotNull(physically_erased_at) + isNotNull(log_expired_at) COMMENT 'Greatest for the copy that knows most'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY erasure_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Receipts of erasures. Read with FINAL.'
