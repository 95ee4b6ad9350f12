-- What these identities have chosen about tracking, each change. Two granules an identity and part.
CREATE OR REPLACE VIEW portal_consents DEFINER = views SQL SECURITY DEFINER AS
SELECT lower(hex(identity_key)) AS identity_id, status, source, received_at, logged_at, trace_id, kafka_partition, kafka_offset
FROM consent_log FINAL
WHERE environment_id = {environment: String}
    AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
COMMENT 'portal_consents(environment = …, identities = […]): changes of consents of these identities, 32 hexadecimal digits each'
