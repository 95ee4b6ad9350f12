-- Which versions an activity has, found by its id: a page leaves out versions that have a later one below its horizon, and
-- the writer refuses an update that changes what never changes. Not only the latest one is kept: whether a version is
-- served must depend on the horizon alone, and not on when parts were merged. One id stands in one granule, hence the
-- small ones: a page looks up 200 of them.
CREATE TABLE IF NOT EXISTS activity_versions
(
    id UUID COMMENT 'The activity',
    updated_at DateTime64(6, 'UTC') COMMENT 'The version, as in activities',
    chain LowCardinality(String) COMMENT 'Name of the chain',
    contract FixedString(20) COMMENT 'As in activities; the same in every version',
    type LowCardinality(String) COMMENT 'As in activities; the same in every version',
    indexed_at DateTime64(6, 'UTC') COMMENT 'As in activities; the same in every version'
)
ENGINE = ReplacingMergeTree
ORDER BY (id, updated_at)
SETTINGS index_granularity = 128, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Versions of activities by id'
