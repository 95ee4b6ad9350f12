-- The eraser stores a request before it commits its offset, because the topic keeps it for a week only. A request without a row in
-- erasure_receipts is unfinished. Rows contain identity keys and never an id.
--
-- An erasure deletes the decisions about a person, but a request received in the meantime is about the identities that were
-- linked at its own cut-off. So links are kept here with their times. No request needs them after its receipt; thirty days are
-- ten times as long as the log keeps them.
CREATE TABLE IF NOT EXISTS erasure_requests
(
    erasure_id UUID COMMENT 'Id from the gateway: header x-erasure-id',
    environment_id LowCardinality(String) COMMENT 'Environment of the person',
    subject_keys Array(FixedString(16)) COMMENT 'Keyed hashes of the ids in the request',
    member_keys Array(FixedString(16)) COMMENT 'Keyed hashes of the other ids of the person: those linked when the request was accepted, then all that the eraser has found',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'Rows that happened or were received up to this time are erased',
    requested_at DateTime64(3, 'UTC') COMMENT 'When the gateway accepted it',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    links Array(Tuple(
        a_key FixedString(16),
        b_key FixedString(16),
        received_at DateTime64(3, 'UTC'),
        link_generation UInt8,
        link_offset UInt64,
        unlinked_at Nullable(DateTime64(3, 'UTC'))))
        COMMENT 'Links that the eraser deletes: keyed hashes of both ids, when the link was received, the last fact about it, and when it was unlinked'
        TTL toDateTime(requested_at) + INTERVAL 30 DAY
)
ENGINE = {{engine ReplacingMergeTree}}
ORDER BY erasure_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Accepted erasures. Read with FINAL where a request that was read twice must be one row.';

-- Rows of these identities that are not newer than the cut-off are never written again, however late they arrive. Of two
-- erasures of an identity the later cut-off is the version that remains.
CREATE TABLE IF NOT EXISTS erasure_fences
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the erased identity',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'Rows that happened or were received up to this time are not written',
    erasure_id UUID COMMENT 'Erasure that fenced it',
    fenced_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the fence was written, by the clock of ClickHouse: readers of new fences filter by it'
)
ENGINE = {{engine ReplacingMergeTree(cutoff_at)}}
ORDER BY (environment_id, identity_key)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Erased identities. Of several cut-offs of an identity the greatest applies.';

-- Written when no query finds a row any more, and again with each later time; the row with the most times wins. There is no
-- identity key: closure_hash shows whether a list of keys is the erased one.
CREATE TABLE IF NOT EXISTS erasure_receipts
(
    erasure_id UUID COMMENT 'Id from the gateway: header x-erasure-id',
    environment_id LowCardinality(String) COMMENT 'Environment of the person',
    closure_hash FixedString(32) COMMENT 'SHA-256 of the identity keys of the person, 16 bytes each, in the order of their bytes',
    closure_count UInt32 COMMENT 'How many identities the person had',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'Rows that happened or were received up to this time were erased',
    accepted_at DateTime64(3, 'UTC') COMMENT 'When the gateway accepted the request',
    fenced_at DateTime64(3, 'UTC') COMMENT 'When every identity was fenced',
    visibly_erased_at DateTime64(3, 'UTC') COMMENT 'When no query returned a row any more',
    physically_erased_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When no row was on the disk of ClickHouse any more; null until then',
    log_expires_at DateTime64(3, 'UTC') COMMENT 'Latest time at which the log still has a record of the person',
    log_expired_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When every partition of the log began after log_ends; null until then',
    deleted Map(LowCardinality(String), UInt64) COMMENT 'Rows and values deleted or blanked, by store and table, for example clickhouse.events',
    verified Map(LowCardinality(String), UInt64) COMMENT 'Rows counted afterwards, by store and table; always zero',
    log_ends Map(String, UInt64) COMMENT 'End of the log after the fences were written, by topic/partition',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits',
    version UInt8 MATERIALIZED 1 + isNotNull(physically_erased_at) + isNotNull(log_expired_at) COMMENT 'Greatest for the row with the most times'
)
ENGINE = {{engine ReplacingMergeTree(version)}}
ORDER BY erasure_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Receipts of erasures. Read with FINAL.';
