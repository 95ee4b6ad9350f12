-- The source of the dictionary identity_persons. Its first row has the time at which the load began, and is read first, so
-- overrides that the other rows lack were stored later or at the same time. Versions are one more than stored, because the very first decision
-- has version 0, and 0 means that the dictionary does not have the identity.
CREATE VIEW IF NOT EXISTS settled_persons
(
    name UInt64 COMMENT 'First half of the identity key; the greatest number in the row of the load',
    identity_key UUID COMMENT 'Keyed hash of the identity',
    person_key UUID COMMENT 'Person of the identity',
    version UInt64 COMMENT 'Version of the override, plus one; in the row of the load its time in epoch milliseconds'
)
SQL SECURITY INVOKER AS
SELECT toUInt64(18446744073709551615) AS name, toUUID('00000000-0000-0000-0000-000000000000') AS identity_key,
    toUUID('00000000-0000-0000-0000-000000000000') AS person_key, toUInt64(toUnixTimestamp64Milli(now64(3))) AS version
UNION ALL
SELECT reinterpretAsUInt64(identity_key), reinterpretAsUUID(identity_key), reinterpretAsUUID(person_key), version + 1
FROM identity_overrides FINAL
COMMENT 'Source of the dictionary identity_persons';

-- Persons as of the last load, in memory. `name` is the first half of the identity key, a hash that contains the environment:
-- unique enough to search by, and the whole key is compared afterwards. The dictionary has the identities of every environment
-- and no row policy applies to it, so only the account `views` may read it.
CREATE DICTIONARY IF NOT EXISTS identity_persons (name UInt64, identity_key UUID, person_key UUID, version UInt64)
PRIMARY KEY name
SOURCE(CLICKHOUSE(NAME persons TABLE 'settled_persons' INVALIDATE_QUERY 'SELECT max(stored_at), count() FROM identity_overrides'))
LAYOUT(HASHED_ARRAY())
LIFETIME(MIN 240 MAX 360)
COMMENT 'Person of every linked identity at the time of the load; newer ones are in recent_overrides';

-- What was stored since the load of the dictionary, and two minutes before it: the time of a row is taken when its insert
-- begins, and an insert may take a minute. An old decision that is written again is stored later but has no greater version.
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
COMMENT 'Overrides that are newer than the dictionary identity_persons. The key of an identity includes its environment.';
