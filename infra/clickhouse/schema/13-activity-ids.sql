-- The writer refuses an update that changes a constant member, and finds earlier versions by id, which is what the projection is
-- for. All versions are kept: whether a version is served must depend on the horizon and not on when parts were merged.
-- Activities that are near each other in a feed have similar indexed_at, so a query for many ids reads few granules,
-- which are small, each in a compressed block of its own.
CREATE TABLE IF NOT EXISTS activity_ids
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    indexed_at DateTime64(6, 'UTC') COMMENT 'As in activities; the same in every version',
    id UUID COMMENT 'The activity',
    updated_at DateTime64(6, 'UTC') COMMENT 'The version, as in activities',
    contract FixedString(20) COMMENT 'As in activities; the same in every version',
    type LowCardinality(String) COMMENT 'As in activities; the same in every version',
    PROJECTION of_id (SELECT id, updated_at, chain, contract, type, indexed_at ORDER BY id, updated_at)
)
ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (chain, indexed_at, id, updated_at)
SETTINGS index_granularity = 64, min_compress_block_size = 2048, max_compress_block_size = 4096, deduplicate_merge_projection_mode = 'rebuild', non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Versions of activities by id, with their constant members';
