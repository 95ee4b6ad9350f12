-- The row policies of the account `views` look up this table (users.xml), so it is created before every view. Granules of 512
-- rows: each of these lookups reads one granule.
CREATE TABLE IF NOT EXISTS analyst_grants
(
    account LowCardinality(String) COMMENT 'Account of ClickHouse',
    environment_id LowCardinality(String) COMMENT 'Environment that the account may read; *: all of them',
    revoked Bool COMMENT 'The grant is revoked',
    changed_at DateTime64(3, 'UTC') COMMENT 'When the grant was changed',
    version UInt64 COMMENT 'Milliseconds of changed_at; the greatest applies'
)
ENGINE = {{engine ReplacingMergeTree(version)}}
ORDER BY (account, environment_id)
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Environments that each account may read through the views. npm run analysts changes it. Read with FINAL.';

-- The claim is in the sorting key: when two commands take the same account at the same time, each sees both claims or the
-- other command sees none, so no password is shown to two people.
CREATE TABLE IF NOT EXISTS analyst_accounts
(
    account LowCardinality(String) COMMENT 'Account of ClickHouse',
    password_mark String COMMENT 'Part of the hash of the password; differs between passwords of the account',
    claim UUID COMMENT 'Id of the command that took the account',
    dropped Bool COMMENT 'The account is free again',
    changed_at DateTime64(3, 'UTC') COMMENT 'When the account was taken or freed',
    version UInt64 COMMENT '0 when taken, 1 when freed; the greatest applies'
)
ENGINE = {{engine ReplacingMergeTree(version)}}
ORDER BY (account, password_mark, claim)
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Accounts that analysts have. npm run analysts changes it. Their environments are in analyst_grants. Read with FINAL.';

-- Every row policy reads this view (users.xml). authenticatedUser() is the account that logged in, also inside a view that runs
-- with the rights of another account; a client of the native protocol can set currentUser(). `operator` and `writer` run the
-- pipeline and see everything. `portal` may read only views that take one environment or project as a parameter (portal_…).
-- No account has logged in when ClickHouse itself loads the dictionary of persons, as `views`.
CREATE VIEW IF NOT EXISTS readable_environments
(
    environment_id String COMMENT 'Environment; *: all of them'
)
SQL SECURITY INVOKER AS
SELECT environment_id FROM analyst_grants FINAL WHERE account = authenticatedUser() AND NOT revoked
UNION ALL
SELECT '*' WHERE authenticatedUser() IN ('operator', 'writer', 'portal') OR (authenticatedUser() = '' AND currentUser() = 'views')
COMMENT 'Environments whose rows the account of the query may see through the views; *: all of them';

-- Every deployment has the account `analyst`. A revocation has a greater version, so a repeated insert does not undo it.
INSERT INTO analyst_grants (account, environment_id, revoked, changed_at, version) VALUES ('analyst', '*', false, now64(3), 1);
