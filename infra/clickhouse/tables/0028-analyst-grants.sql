-- Which account may read which environment. It stands before every view, though it is younger than most: the row policies
-- of the account of the views look it up (users.xml), so without it none of them could be made.
CREATE TABLE IF NOT EXISTS analyst_grants
(
    account LowCardinality(String) COMMENT 'Account of ClickHouse that asks',
    environment_id LowCardinality(String) COMMENT 'Environment that it may read; * is all of them',
    revoked Bool COMMENT 'It no longer may',
    changed_at DateTime64(3, 'UTC') COMMENT 'When an operator said so',
    version UInt64 COMMENT 'The greatest is true: milliseconds when it was said'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (account, environment_id)
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Environments that each account may read through the views; changed by: npm run analysts. Read with FINAL.'
