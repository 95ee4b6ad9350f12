-- Pages of the chain API come from this table. Each filter by contract, type or both is a feed of its own, so that a page is some
-- hundred neighbouring rows of one feed. An activity is in four feeds, each time with the text that readers get.
--
-- When a later version arrives, a second entry next to the earlier version has its time. Readers combine the two, so whether a
-- version is served depends on the horizon only.
--
-- Partitions: versions are written in the order of time, so a page opens the one or two parts that have its times; a year is a
-- partition. The versions that a block supersedes can be of any time, so a page opens all parts with such entries: they are
-- one partition, small and few.
--
-- Sorting key: the name of a feed is one column without a dictionary. A key of several LowCardinality columns took five times as
-- long to find a row in a large part.
--
-- Granules of 128 rows in small compressed blocks: a page unpacks little more than its rows. indexed_at_span skips granules
-- for filters by time of indexing.
--
-- token_ids finds the activities of one token, which are anywhere in the feed of its contract. Other queries do not read it. The
-- expression must equal that of the view portal_activities. A regular expression would take five times as long at each insert
-- and merge. A block has versions of up to two years and what they supersede: hence as many tokens as events.
CREATE TABLE IF NOT EXISTS activity_feeds
(
    entry Enum8('version' = 1, 'superseded' = 2) COMMENT 'version, or superseded: the version has a later one',
    feed String COMMENT 'Chain, contract (0x and 40 digits in lower case) and type, with a space between; * for the activities of all contracts, or of all types',
    updated_at DateTime64(6, 'UTC') COMMENT 'Position of this version in the feed, as in activities',
    id UUID COMMENT 'The activity',
    indexed_at DateTime64(6, 'UTC') COMMENT 'As in activities; the same in every version',
    kafka_partition UInt16 COMMENT 'Partition of chain.activities.v1 with the chain; 0 in superseded entries',
    superseded_at DateTime64(6, 'UTC') COMMENT 'updated_at of the next version of the activity; in a version a time in the far future',
    members String COMMENT 'JSON of the members after id and chain, as readers get them; empty in superseded entries' CODEC(ZSTD(1)),
    INDEX indexed_at_span indexed_at TYPE minmax GRANULARITY 1,
    INDEX token_ids arrayMap(part -> substringIndex(part, '"', 1), arraySlice(splitByString('"token_id":"', members), 2)) TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {{engine ReplacingMergeTree}}
PARTITION BY (entry, if(entry = 'version', toYear(updated_at), 0))
PRIMARY KEY (feed, updated_at)
ORDER BY (feed, updated_at, id)
SETTINGS index_granularity = 128, min_compress_block_size = 16384, max_compress_block_size = 65536, non_replicated_deduplication_window = 300000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Versions of activities in a feed for each filter, with the text that readers get. Not for counting.';
