-- Who was parted from whom by an operator's unlink: facts not later than it do not bring the two sides together again, and
-- a rebuild of Redis must know that. A row an identity and unlink, its place among the link facts in the key, so that a
-- decision that is published twice stays one row. Small granules: a look-up of one identity reads 512 rows.
CREATE TABLE IF NOT EXISTS identity_unlinks
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    link_generation UInt8 COMMENT 'Generation of the link topic that held the unlink',
    link_offset UInt64 COMMENT 'Offset of the unlink: all that stands before it was decided before it',
    side LowCardinality(String) COMMENT 'split: it was split off; stayed: it stayed; none: nobody was split, and this was named first',
    unlinked_at DateTime64(3, 'UTC') COMMENT 'When the operator asked for it: what happened or was received up to then does not undo it'
)
ENGINE = ReplacingMergeTree
ORDER BY (environment_id, identity_key, link_generation, link_offset)
SETTINGS index_granularity = 512, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Memory of unlinks. What the people are now stands in identity_overrides, why in identity_links.'
