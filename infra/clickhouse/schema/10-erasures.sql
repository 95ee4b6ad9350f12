-- The eraser stores a request before it commits the offset, because the topic retains requests for only a week. A request without
-- a row in erasure_receipts is unfinished. Rows contain identity keys, never ids.
--
-- An erasure deletes the decisions about a person. A request received during that erasure still applies to the identities that
-- were linked at the cut-off of that request, so the links are stored here with their timestamps. They are no longer needed
-- once the receipt is published. Links are retained for thirty days, ten times the retention of the log.
CREATE TABLE IF NOT EXISTS erasure_requests
(
    erasure_id UUID COMMENT 'Erasure id returned by the gateway in the header x-erasure-id',
    environment_id LowCardinality(String) COMMENT 'Environment of the person',
    subject_keys Array(FixedString(16)) COMMENT 'Keyed hashes of the ids in the request',
    member_keys Array(FixedString(16)) COMMENT 'Keyed hashes of the other ids of the person: at first the ids linked when the request was accepted, later all ids found by the eraser',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'Cut-off; rows with an event or receipt time up to this time are erased',
    requested_at DateTime64(3, 'UTC') COMMENT 'Time when the gateway accepted the request',
    trace_id String COMMENT 'Trace id of the request, 32 hexadecimal digits',
    links Array(Tuple(
        a_key FixedString(16),
        b_key FixedString(16),
        received_at DateTime64(3, 'UTC'),
        link_generation UInt8,
        link_offset UInt64,
        unlinked_at Nullable(DateTime64(3, 'UTC'))))
        COMMENT 'Links that the eraser deletes: keyed hashes of both ids, receipt time, position of the last link fact, and time of the unlink'
        TTL toDateTime(requested_at) + INTERVAL 30 DAY
)
ENGINE = {{engine ReplacingMergeTree}}
ORDER BY erasure_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Accepted erasures. Read with FINAL so that a request stored twice is counted once.';

-- Rows of these identities up to the cut-off are never written again, no matter how late they arrive. If an identity was erased twice,
-- the row with the later cut-off remains.
CREATE TABLE IF NOT EXISTS erasure_fences
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the erased identity',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'Cut-off; rows with an event or receipt time up to this time are not written',
    erasure_id UUID COMMENT 'Erasure that set the fence',
    fenced_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'Time when the fence was written, according to the ClickHouse clock; readers of new fences filter by this column'
)
ENGINE = {{engine ReplacingMergeTree(cutoff_at)}}
ORDER BY (environment_id, identity_key)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Erased identities. If an identity has several cut-offs, the latest one applies.';

-- A row is written when no query returns the person's data any more, and another whenever physically_erased_at or
-- log_expired_at becomes known; the latest row wins. Receipts contain no identity key: closure_hash identifies the erased
-- keys.
CREATE TABLE IF NOT EXISTS erasure_receipts
(
    erasure_id UUID COMMENT 'Erasure id returned by the gateway in the header x-erasure-id',
    environment_id LowCardinality(String) COMMENT 'Environment of the person',
    closure_hash FixedString(32) COMMENT 'SHA-256 of the identity keys of the person, 16 bytes each, in byte order',
    closure_count UInt32 COMMENT 'Number of identities of the person',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'Cut-off; rows with an event or receipt time up to this time were erased',
    accepted_at DateTime64(3, 'UTC') COMMENT 'Time when the gateway accepted the request',
    fenced_at DateTime64(3, 'UTC') COMMENT 'Time when all identities were fenced',
    visibly_erased_at DateTime64(3, 'UTC') COMMENT 'Time since which no query has returned a row of the person',
    physically_erased_at Nullable(DateTime64(3, 'UTC')) COMMENT 'Time since which no row of the person has been on the ClickHouse disks; NULL until then',
    log_expires_at DateTime64(3, 'UTC') COMMENT 'Latest time at which the log can still contain a record of the person',
    log_expired_at Nullable(DateTime64(3, 'UTC')) COMMENT 'Time when the first offsets of all partitions were past log_ends; NULL until then',
    deleted Map(LowCardinality(String), UInt64) COMMENT 'Number of rows and values deleted or blanked per store and table, for example clickhouse.events',
    verified Map(LowCardinality(String), UInt64) COMMENT 'Number of remaining rows per store and table; always zero',
    log_ends Map(String, UInt64) COMMENT 'End offsets of the log after the fences were written, per topic/partition',
    trace_id String COMMENT 'Trace id of the request, 32 hexadecimal digits',
    version UInt8 MATERIALIZED 1 + isNotNull(physically_erased_at) + isNotNull(log_expired_at) COMMENT 'Merge version, highest for the row with the most timestamps set'
)
ENGINE = {{engine ReplacingMergeTree(version)}}
ORDER BY erasure_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Erasure receipts. Read with FINAL.';
