-- Which versions an activity has: a page leaves out versions that have a later one below its horizon, and the writer
-- refuses an update that changes what never changes. Not only the latest one is kept: whether a version is served must
-- depend on the horizon alone, and not on when parts were merged.
--
-- In the order of indexed_at, which never changes and is near for activities that are near in the feed: a page looks up
-- 200 of them in a few small granules, each compressed by itself; the index of ids leaves out those of other parts whose
-- times are the same ones. The writer knows an activity by its id alone, hence the
-- projection.
CREATE TABLE IF NOT EXISTS activity_versions
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    indexed_at DateTime64(6, 'UTC') COMMENT 'As in activities; the same in every version',
    id UUID COMMENT 'The activity',
    updated_at DateTime64(6, 'UTC') COMMENT 'The version, as in activities',
    contract FixedString(20) COMMENT 'As in activities; the same in every version',
    type LowCardinality(String) COMMENT 'As in activities; the same in every version',
    INDEX ids id TYPE bloom_filter(0.0001) GRANULARITY 1,
    PROJECTION of_id (SELECT id, updated_at, chain, contract, type, indexed_at ORDER BY id, updated_at)
)
ENGINE = ReplacingMergeTree
ORDER BY (chain, indexed_at, id, updated_at)
SETTINGS index_granularity = 64, min_compress_block_size = 2048, max_compress_block_size = 4096, deduplicate_merge_projection_mode = 'rebuild', non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Versions of activities by id and time of indexing'
