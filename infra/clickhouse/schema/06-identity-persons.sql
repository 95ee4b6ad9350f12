-- The source of the dictionary identity_persons. The first row contains the start time of the load. It is read first, so
-- overrides missing from the other rows were stored at or after that time. The view adds one to each stored version: the first
-- decision has version 0, and in the dictionary 0 means that the identity is missing.
CREATE VIEW IF NOT EXISTS settled_persons
(
    name UInt64 COMMENT 'First half of the identity key; the greatest number in the row with the load time',
    identity_key UUID COMMENT 'Keyed hash of the identity',
    person_key UUID COMMENT 'Person of the identity',
    version UInt64 COMMENT 'Version of the override plus one; epoch milliseconds in the row with the load time'
)
SQL SECURITY INVOKER AS
SELECT toUInt64(18446744073709551615) AS name, toUUID('00000000-0000-0000-0000-000000000000') AS identity_key,
    toUUID('00000000-0000-0000-0000-000000000000') AS person_key, toUInt64(toUnixTimestamp64Milli(now64(3))) AS version
UNION ALL
SELECT reinterpretAsUInt64(identity_key), reinterpretAsUUID(identity_key), reinterpretAsUUID(person_key), version + 1
FROM identity_overrides FINAL
COMMENT 'Source of the dictionary identity_persons';

-- Persons as of the last load, in memory. `name` is the first half of the identity key, a hash that includes the environment.
-- Lookups use `name` and then compare the complete key. The dictionary contains the identities of all environments, and no row
-- policy applies to it, so only the account `views` may read it.
CREATE DICTIONARY IF NOT EXISTS identity_persons (name UInt64, identity_key UUID, person_key UUID, version UInt64)
PRIMARY KEY name
SOURCE(CLICKHOUSE(NAME persons TABLE 'settled_persons' INVALIDATE_QUERY 'SELECT max(stored_at), count() FROM identity_overrides'))
LAYOUT(HASHED_ARRAY())
LIFETIME(MIN 240 MAX 360)
COMMENT 'Person of each linked identity at the time of the load. recent_overrides contains newer links.';

-- The overrides stored since two minutes before the dictionary was loaded: stored_at is set when an insert begins, and an insert
-- may take a minute. An old decision that is written again has a new stored_at, but no greater version.
CREATE VIEW IF NOT EXISTS recent_overrides
(
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    person_key FixedString(16) COMMENT 'Person of the identity'
)
SQL SECURITY INVOKER AS
SELECT identity_key, argMax(person_key, version) AS person_key
FROM identity_overrides
WHERE stored_at > fromUnixTimestamp64Milli(toInt64(dictGet('identity_persons', 'version', toUInt64(18446744073709551615))), 'UTC') - INTERVAL 2 MINUTE
GROUP BY identity_key
HAVING max(version) + 1 > dictGetOrDefault('identity_persons', 'version', reinterpretAsUInt64(identity_key), toUInt64(0))
COMMENT 'Overrides newer than the dictionary identity_persons. An identity key includes the environment.';
