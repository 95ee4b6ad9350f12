-- What was stored since persons were read for the dictionary, and two minutes before: a time is noted when an insert
-- begins, and an insert may take a minute. An old decision that is written again is stored later and is no newer.
CREATE OR REPLACE VIEW recent_overrides SQL SECURITY INVOKER AS
SELECT identity_key, argMax(person_key, version) AS person_key
FROM identity_overrides
WHERE stored_at > fromUnixTimestamp64Milli(toInt64(dictGet('identity_persons', 'version', toUInt64(18446744073709551615))), 'UTC') - INTERVAL 2 MINUTE
GROUP BY identity_key
HAVING max(version) + 1 > dictGetOrDefault('identity_persons', 'version', reinterpretAsUInt64(identity_key), toUInt64(0))
COMMENT 'Overrides that are newer than the dictionary identity_persons. The key of an identity holds its environment.'
