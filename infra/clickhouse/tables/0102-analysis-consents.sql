-- For people who ask questions: the log of consents as text, with the person behind each identity.
CREATE OR REPLACE VIEW analysis_consents DEFINER = views SQL SECURITY DEFINER AS
WITH dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(consent.identity_key),
    (toUUID('00000000-0000-0000-0000-000000000000'), toUUID('00000000-0000-0000-0000-000000000000'))) AS settled
SELECT
    consent.environment_id AS environment_id,
    lower(hex(multiIf(ifNull(recent.person_key, toFixedString('', 16)) != toFixedString('', 16), assumeNotNull(recent.person_key),
        reinterpretAsUUID(consent.identity_key) = settled.1, reinterpretAsFixedString(settled.2),
        consent.identity_key))) AS person_id,
    lower(hex(consent.identity_key)) AS identity_id,
    consent.status AS status, consent.source AS source, consent.received_at AS received_at
FROM (SELECT * FROM consent_log FINAL) AS consent
LEFT ANY JOIN recent_overrides AS recent ON consent.identity_key = recent.identity_key
COMMENT 'Every change of a tracking consent, one row each. What holds now stands in analysis_consents_current.'
