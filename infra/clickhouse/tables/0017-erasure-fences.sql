-- Who was erased, and up to when: nothing older of these identities is written again, however late it comes. Of two
-- erasures of one identity the later cut-off is true.
CREATE TABLE IF NOT EXISTS erasure_fences
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the erased identity',
    cutoff_at DateTime64(3, 'UTC') COMMENT 'Rows that happened or were received up to here are kept out',
    erasure_id UUID COMMENT 'Erasure that fenced it',
    fenced_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the fence was written, by the clock of this server: who looks for new fences asks from here'
)
ENGINE = ReplacingMergeTree(cutoff_at)
ORDER BY (environment_id, identity_key)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Erased identities. Several cut-offs of one may stand until a merge: the greatest is true.'
