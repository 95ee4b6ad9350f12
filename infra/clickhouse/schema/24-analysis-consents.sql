-- Consents with hexadecimal ids and the person of each identity.
CREATE VIEW IF NOT EXISTS analysis_consents
(
    environment_id LowCardinality(String) COMMENT 'Environment in which the consent was given',
    person_id String COMMENT 'Person at query time, 32 hexadecimal digits',
    identity_id String COMMENT 'Keyed hash of the anonymous id, 32 hexadecimal digits',
    status LowCardinality(String) COMMENT 'Consent status: none, anonymous or full',
    source LowCardinality(String) COMMENT 'Location in the product where the consent was given, as reported by the client',
    received_at DateTime64(3, 'UTC') COMMENT 'Time when the gateway accepted the change'
)
DEFINER = views SQL SECURITY DEFINER AS
WITH dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(consent.identity_key),
    (toUUID('00000000-0000-0000-0000-000000000000'), toUUID('00000000-0000-0000-0000-000000000000'))) AS dictionary_entry
SELECT
    consent.environment_id AS environment_id,
    lower(hex(multiIf(ifNull(recent.person_key, toFixedString('', 16)) != toFixedString('', 16), assumeNotNull(recent.person_key),
        reinterpretAsUUID(consent.identity_key) = dictionary_entry.1, reinterpretAsFixedString(dictionary_entry.2),
        consent.identity_key))) AS person_id,
    lower(hex(consent.identity_key)) AS identity_id,
    consent.status AS status, consent.source AS source, consent.received_at AS received_at
FROM (SELECT * FROM consent_log FINAL) AS consent
LEFT ANY JOIN recent_overrides AS recent ON consent.identity_key = recent.identity_key
COMMENT 'Changes to tracking consents, one row per change. analysis_consents_current contains the current consents.';

CREATE VIEW IF NOT EXISTS analysis_consents_current DEFINER = views SQL SECURITY DEFINER AS
WITH dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(consent.identity_key),
    (toUUID('00000000-0000-0000-0000-000000000000'), toUUID('00000000-0000-0000-0000-000000000000'))) AS dictionary_entry
SELECT
    consent.environment_id AS environment_id,
    lower(hex(multiIf(ifNull(recent.person_key, toFixedString('', 16)) != toFixedString('', 16), assumeNotNull(recent.person_key),
        reinterpretAsUUID(consent.identity_key) = dictionary_entry.1, reinterpretAsFixedString(dictionary_entry.2),
        consent.identity_key))) AS person_id,
    lower(hex(consent.identity_key)) AS identity_id,
    consent.status AS status, consent.source AS source, consent.received_at AS received_at
FROM consents_current AS consent
LEFT ANY JOIN recent_overrides AS recent ON consent.identity_key = recent.identity_key
COMMENT 'Current tracking consent of each identity that has made a consent choice.';

ALTER TABLE analysis_consents_current {{comments of analysis_consents}};
