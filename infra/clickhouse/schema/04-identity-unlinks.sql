-- Facts up to an unlink do not rejoin the two sides. A rebuild of Redis reads the unlinks from this table. The sorting key
-- contains the position of the unlink, so publishing a decision twice results in one row. With granules of 512 rows, a query
-- for one identity reads 512 rows instead of 8,192.
CREATE TABLE IF NOT EXISTS identity_unlinks
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    link_generation UInt8 COMMENT 'Generation of the link topic that contains the unlink',
    link_offset UInt64 COMMENT 'Offset of the unlink; facts with smaller offsets were decided earlier',
    side LowCardinality(String) COMMENT 'Role of the identity: split (separated from the person), stayed (remained with the person), or none (nothing was separated; the first identity of the request)',
    unlinked_at DateTime64(3, 'UTC') COMMENT 'Time when the operator requested the unlink; messages up to this time do not undo it'
)
ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (environment_id, identity_key, link_generation, link_offset)
SETTINGS index_granularity = 512, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Identities of unlinks. identity_overrides contains the current persons, identity_links the reasons.';
