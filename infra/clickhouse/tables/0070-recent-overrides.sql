-- What was stored since persons were read for the dictionary, and two minutes before: a time is noted when an insert
-- begins, and an insert may take a minute.
CREATE OR REPLACE VIEW recent_overrides SQL SECURITY INVOKER AS
SELECT environment_id, identity_key, argMax(person_key, version) AS person_key, max(version) AS latest
FROM identity_overrides
WHERE stored_at > fromUnixTimestamp64Milli(toInt64(dictGet('identity_persons', 'version', toUInt64(18446744073709551615))), 'UTC') - INTERVAL 2 MINUTE
GROUP BY environment_id, identity_key
COMMENT 'Overrides that the dictionary identity_persons may not have yet'
