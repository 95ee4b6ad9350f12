-- The writer rejects an update that changes an immutable field. It finds earlier versions by id with the projection. All versions
-- are retained, because the horizon, not the time of a merge, must determine which version is returned. Activities that are close
-- in a feed have similar indexed_at values, so a query for many ids reads few granules. Each granule is small and has its own
-- compressed block.
CREATE TABLE IF NOT EXISTS activity_ids
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    indexed_at DateTime64(6, 'UTC') COMMENT 'Time when the activity was first indexed, as in activities; the same in every version',
    id UUID COMMENT 'Activity id',
    updated_at DateTime64(6, 'UTC') COMMENT 'Position of the version in the feed, as in activities',
    contract FixedString(20) COMMENT 'Contract address, as in activities; the same in every version',
    type LowCardinality(String) COMMENT 'Type of the activity, as in activities; the same in every version',
    PROJECTION of_id (SELECT id, updated_at, chain, contract, type, indexed_at ORDER BY id, updated_at)
)
ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (chain, indexed_at, id, updated_at)
SETTINGS index_granularity = 64, min_compress_block_size = 2048, max_compress_block_size = 4096, deduplicate_merge_projection_mode = 'rebuild', non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Activity versions by id, with their immutable fields';
