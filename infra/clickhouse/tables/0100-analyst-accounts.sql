-- Which accounts were given out. The claim is part of the key: of two commands that take the same account at once each
-- sees both claims or the other one sees none, so no password is shown to two people.
CREATE TABLE IF NOT EXISTS analyst_accounts
(
    account LowCardinality(String) COMMENT 'Account of ClickHouse',
    password_mark String COMMENT 'Tells one password of the account from the next; nothing can be logged in with it',
    claim UUID COMMENT 'Names the command that took it',
    dropped Bool COMMENT 'It was taken back',
    changed_at DateTime64(3, 'UTC') COMMENT 'When it was taken, or taken back',
    version UInt64 COMMENT 'The greatest is true: 0 when it was taken, 1 when it was taken back'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (account, password_mark, claim)
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Accounts that were given to analysts, changed by: npm run analysts. What each may read stands in analyst_grants. Read with FINAL.'
