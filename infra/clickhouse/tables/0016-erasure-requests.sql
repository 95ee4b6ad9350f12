-- Every accepted erasure, from before its offset is committed: the topic forgets after a week, this does not. A request
-- without a row in erasure_receipts is unfinished. Identity keys only, no id.
CREATE TABLE IF NOT EXISTS erasure_requests
(
    erasure_id UUID COMMENT 'Given by the gateway: header x-erasure-id',
    environment_id LowCardinality(String) COMMENT 'Environment of the person',
    subject_keys Array(FixedString(16)) COMMENT 'Keyed hashes of the ids that were named',
    member_keys Array(FixedString(16)) COMMENT 'Keyed hashes of the ids that were linked with them when the request was accepted',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'What happened or was received up to here is erased',
    requested_at DateTime64(3, 'UTC') COMMENT 'When the gateway accepted it',
    trace_id String COMMENT 'Trace of the request: 32 hexadecimal digits'
)
ENGINE = ReplacingMergeTree
ORDER BY erasure_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Accepted erasures. A request read twice is one row with FINAL.'
