-- Facts that are not later than an unlink do not join the two sides again. A rebuild of Redis reads that here. The position
-- of the unlink is in the sorting key, so a decision that is published twice is one row. Granules of 512 rows: a query for one
-- identity reads 512 rows instead of 8,192.
CREATE TABLE IF NOT EXISTS identity_unlinks
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    link_generation UInt8 COMMENT 'Generation of the link topic with the unlink',
    link_offset UInt64 COMMENT 'Offset of the unlink: facts with smaller offsets were decided before it',
    side LowCardinality(String) COMMENT 'split: it was split off; stayed: it stayed; none: no identity was split off, and this one was named first',
    unlinked_at DateTime64(3, 'UTC') COMMENT 'When the operator requested it: messages up to this time do not undo it'
)
ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (environment_id, identity_key, link_generation, link_offset)
SETTINGS index_granularity = 512, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Sides of unlinks. The present persons are in identity_overrides, the reasons in identity_links.';
