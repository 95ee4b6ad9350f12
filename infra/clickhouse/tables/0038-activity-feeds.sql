-- What readers of the history are answered with. Each filter by contract, type or both is a feed of its own, and all of
-- them are here, so that any page is some hundred neighbours of one feed: an activity stands in four feeds, with the text
-- that readers get. A year a partition, so that what is before a cursor is left out and years are in few parts.
--
-- An entry may come in two halves: the version with its text, and, when a later version comes, when that was. Merges make
-- them one; until then they are neighbours, and readers put them together. Whether a version is served then depends on
-- the horizon alone: not on when parts were merged, and on nothing that stands elsewhere.
CREATE TABLE IF NOT EXISTS activity_feeds
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    of_contract String COMMENT 'The feed: 20 bytes of a contract, or nothing for the activities of all contracts',
    of_type LowCardinality(String) COMMENT 'The feed: a type, or nothing for the activities of all types',
    updated_at DateTime64(6, 'UTC') COMMENT 'Place of this version in the feed, as in activities',
    id UUID COMMENT 'The activity',
    indexed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')) COMMENT 'As in activities; the same in every version',
    kafka_partition SimpleAggregateFunction(max, UInt16) COMMENT 'Partition of chain.activities.v1 that the chain is in',
    superseded_at SimpleAggregateFunction(min, DateTime64(6, 'UTC')) COMMENT 'updated_at of the next version of the activity; 2255-06-05 23:47:34.740990 while there is none',
    members SimpleAggregateFunction(max, String) COMMENT 'JSON of the members behind id and chain, as readers get them; nothing in a half that only says superseded_at' CODEC(ZSTD(1)),
    INDEX indexed_at_span indexed_at TYPE minmax GRANULARITY 1
)
ENGINE = AggregatingMergeTree
PARTITION BY toYear(updated_at)
PRIMARY KEY (chain, of_contract, of_type, updated_at)
ORDER BY (chain, of_contract, of_type, updated_at, id)
SETTINGS index_granularity = 128, min_compress_block_size = 16384, max_compress_block_size = 65536, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Versions of activities, in a feed for each filter, with the text that readers get'
