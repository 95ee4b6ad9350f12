-- The row policies of the account `views` read this table (users.xml), so the table is created before every view. With granules
-- of 512 rows, each policy lookup reads one granule.
CREATE TABLE IF NOT EXISTS analyst_grants
(
    account LowCardinality(String) COMMENT 'ClickHouse account',
    environment_id LowCardinality(String) COMMENT 'Environment that the account may read; * for all environments',
    revoked Bool COMMENT 'Flag that indicates whether the grant is revoked',
    changed_at DateTime64(3, 'UTC') COMMENT 'Time when the grant was changed',
    version UInt64 COMMENT 'Version of the row: changed_at in epoch milliseconds; the row with the greatest version applies'
)
ENGINE = {{engine ReplacingMergeTree(version)}}
ORDER BY (account, environment_id)
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Environments that each account may read through the views, maintained by npm run analysts and by the portal. Read with FINAL.';

-- The claim is part of the sorting key. When two processes claim the same account concurrently, either each process reads both
-- claims or one process reads only its own claim. In both cases, at most one person is shown a password.
CREATE TABLE IF NOT EXISTS analyst_accounts
(
    account LowCardinality(String) COMMENT 'ClickHouse account',
    password_mark String COMMENT 'Prefix of the password hash, different for each password of the account',
    claim UUID COMMENT 'Id of the command or request that claimed the account',
    owner_id String COMMENT 'Portal account whose role determines the environments; empty for accounts of npm run analysts',
    project_id LowCardinality(String) COMMENT 'Project whose environments the owner grants; empty without an owner',
    name String COMMENT 'What the owner uses the credentials for; empty without an owner',
    dropped Bool COMMENT 'Flag that indicates whether the account was released',
    changed_at DateTime64(3, 'UTC') COMMENT 'Time when the account was claimed or released',
    version UInt64 COMMENT 'Version of the row: 0 when claimed, 1 when released; the row with the greatest version applies'
)
ENGINE = {{engine ReplacingMergeTree(version)}}
ORDER BY (account, password_mark, claim)
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'ClickHouse accounts assigned to analysts, maintained by npm run analysts and by the portal. analyst_grants contains their environments. Read with FINAL.';

-- Every row policy reads this view (users.xml). authenticatedUser() returns the account that logged in, even inside a view that
-- runs with the rights of another account; a native-protocol client can set currentUser(). In a cluster, the node that received
-- a query connects to the shards with a secret instead of a login: there, authenticatedUser() is empty and currentUser() is the
-- account that logged in to the first node. The accounts `operator` and `writer` run the pipeline and may read everything. `portal` may
-- read only views that require an environment or project as a parameter (portal_…). When ClickHouse loads the dictionary of
-- persons as `views`, authenticatedUser() is empty.
CREATE VIEW IF NOT EXISTS readable_environments
(
    environment_id String COMMENT 'Environment; * for all environments'
)
SQL SECURITY INVOKER AS
SELECT environment_id FROM analyst_grants FINAL WHERE account = if(authenticatedUser() = '', currentUser(), authenticatedUser()) AND NOT revoked
UNION ALL
SELECT '*' WHERE if(authenticatedUser() = '', currentUser(), authenticatedUser()) IN ('operator', 'writer', 'portal') OR (authenticatedUser() = '' AND currentUser() = 'views')
COMMENT 'Environments whose rows the querying account may read through the views; * for all environments';

-- The account `analyst` exists in every deployment. A revocation has a greater version, so repeating this insert does not undo
-- it.
INSERT INTO analyst_grants (account, environment_id, revoked, changed_at, version) VALUES ('analyst', '*', false, now64(3), 1);
