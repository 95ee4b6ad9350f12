-- What the dictionary below is loaded from. Its first row says when that was: it is read before the others, so whatever
-- they do not have was stored later, or was on its way. Versions are one more than stored, since the first decision of all
-- has version 0, and 0 is for an identity that is not here.
CREATE OR REPLACE VIEW settled_persons SQL SECURITY INVOKER AS
SELECT toUInt64(18446744073709551615) AS name, toUUID('00000000-0000-0000-0000-000000000000') AS identity_key,
    toUUID('00000000-0000-0000-0000-000000000000') AS person_key, toUInt64(toUnixTimestamp64Milli(now64(3))) AS version
UNION ALL
SELECT reinterpretAsUInt64(identity_key), reinterpretAsUUID(identity_key), reinterpretAsUUID(person_key), version + 1
FROM identity_overrides FINAL
COMMENT 'For the dictionary identity_persons'
