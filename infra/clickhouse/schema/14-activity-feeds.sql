-- The chain API reads its pages from this table. Each filter (contract, type or both) is a separate feed, so a page consists
-- of a few hundred adjacent rows of one feed. An activity is in four feeds, each with its response JSON.
--
-- When a later version arrives, the writer adds a second entry with the time of the earlier version. Readers combine both
-- entries, so whether a version is returned depends only on the horizon.
--
-- Partitions: versions are written in time order and partitioned by year, so a page opens the one or two parts that contain its
-- times. The versions that a block supersedes can have any time, so a page opens all parts with superseded entries. These entries
-- form one partition with few small parts.
--
-- Sorting key: the name of a feed is one column without a dictionary. With a key of several LowCardinality columns, finding a row
-- in a large part took five times as long.
--
-- With granules of 128 rows in small compressed blocks, a page decompresses little more than its rows. indexed_at_span skips
-- granules for filters by indexing time.
--
-- token_ids finds the activities of one token, which are spread over the contract's feed. Other queries do not use this filter.
-- The expression must equal the expression in the view portal_activities. A regular expression would make each insert and merge
-- five times slower. A block contains versions from up to two years and the versions that they supersede, so the deduplication
-- window is as large as that of events.
CREATE TABLE IF NOT EXISTS activity_feeds
(
    entry Enum8('version' = 1, 'superseded' = 2) COMMENT 'Type of the entry: version, or superseded for a version with a later version',
    feed String COMMENT 'Name of the feed: chain, contract (0x and 40 lower-case digits) and type, separated by spaces; * for all contracts or all types',
    updated_at DateTime64(6, 'UTC') COMMENT 'Position of the version in the feed, as in activities',
    id UUID COMMENT 'Activity id',
    indexed_at DateTime64(6, 'UTC') COMMENT 'Time when the activity was first indexed, as in activities; the same in every version',
    kafka_partition UInt16 COMMENT 'Partition of chain.activities.v1 that contains the chain; 0 in superseded entries',
    superseded_at DateTime64(6, 'UTC') COMMENT 'updated_at of the next version of the activity; a time in the far future for version entries',
    members String COMMENT 'Response JSON of the members after id and chain; empty in superseded entries' CODEC(ZSTD(1)),
    INDEX indexed_at_span indexed_at TYPE minmax GRANULARITY 1,
    INDEX token_ids arrayMap(part -> substringIndex(part, '"', 1), arraySlice(splitByString('"token_id":"', members), 2)) TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {{engine ReplacingMergeTree}}
PARTITION BY (entry, if(entry = 'version', toYear(updated_at), 0))
PRIMARY KEY (feed, updated_at)
ORDER BY (feed, updated_at, id)
SETTINGS index_granularity = 128, min_compress_block_size = 16384, max_compress_block_size = 65536, non_replicated_deduplication_window = 300000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Activity versions with their response JSON, in one feed per filter. Not suitable for counting.';
