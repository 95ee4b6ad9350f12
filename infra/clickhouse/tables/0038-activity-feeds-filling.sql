-- What readers of the history are answered with. Each filter by contract, type or both is a feed of its own, and all of
-- them are here, so that any page is some hundred neighbours of one feed: an activity stands in four feeds, with the text
-- that readers get.
--
-- When a later version comes, a second entry at the place of the former says when that was. The two are neighbours in the
-- order of the feed, and readers put them together: whether a version is served depends on the horizon alone.
--
-- Versions are written in the order of time, so a page opens the one or two parts that have its times; a year of them is
-- a partition. What a block supersedes may be of any time, so a page opens all parts of that: they are one partition,
-- small and few.
--
-- The name of a feed is one column, and no dictionary: a key of several columns with dictionaries took five times as long
-- to find a place in a large part.
--
-- It gets its name, activity_feeds, when it is filled: a cursor that has passed a hole would never come back.
CREATE TABLE IF NOT EXISTS activity_feeds_filling
(
    entry Enum8('version' = 1, 'superseded' = 2) COMMENT 'A version, or that it has a later one',
    feed String COMMENT 'Chain, contract (0x and 40 digits in lower case) and type, with a space between; * for the activities of all contracts, or of all types',
    updated_at DateTime64(6, 'UTC') COMMENT 'Place of this version in the feed, as in activities',
    id UUID COMMENT 'The activity',
    indexed_at DateTime64(6, 'UTC') COMMENT 'As in activities; the same in every version',
    kafka_partition UInt16 COMMENT 'Partition of chain.activities.v1 that the chain is in; 0 in what is superseded',
    superseded_at DateTime64(6, 'UTC') COMMENT 'updated_at of the next version of the activity; in a version a time that never comes',
    members String COMMENT 'JSON of the members behind id and chain, as readers get them; nothing in what is superseded' CODEC(ZSTD(1)),
    INDEX indexed_at_span indexed_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree
PARTITION BY (entry, if(entry = 'version', toYear(updated_at), 0))
PRIMARY KEY (feed, updated_at)
ORDER BY (feed, updated_at, id)
SETTINGS index_granularity = 128, min_compress_block_size = 16384, max_compress_block_size = 65536, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Versions of activities, in a feed for each filter, with the text that readers get'
