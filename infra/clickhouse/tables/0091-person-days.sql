CREATE OR REPLACE VIEW person_days DEFINER = views SQL SECURITY DEFINER AS
WITH dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(active.identity_key),
    (toUUID('00000000-0000-0000-0000-000000000000'), toUUID('00000000-0000-0000-0000-000000000000'))) AS settled
SELECT
    active.environment_id AS environment_id, active.day AS day, active.event_name AS event_name,
    multiIf(ifNull(recent.person_key, toFixedString('', 16)) != toFixedString('', 16), assumeNotNull(recent.person_key),
        reinterpretAsUUID(active.identity_key) = settled.1, reinterpretAsFixedString(settled.2),
        active.identity_key) AS person_key,
    lower(hex(person_key)) AS person_id
FROM identity_days AS active
LEFT ANY JOIN recent_overrides AS recent ON active.identity_key = recent.identity_key
WHERE NOT active.test
COMMENT 'Who was active on which day, and with which events; without tests. A row an identity, so count people with uniqExact(person_key).'
