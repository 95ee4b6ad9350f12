-- Reads two granules per identity and part.
CREATE VIEW IF NOT EXISTS portal_consents DEFINER = views SQL SECURITY DEFINER AS
SELECT lower(hex(identity_key)) AS identity_id, status, source, received_at, logged_at, trace_id, kafka_partition, kafka_offset
FROM consent_log FINAL
WHERE environment_id = {environment: String}
    AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
COMMENT 'portal_consents(environment = …, identities = […]): consent changes of the given identities, 32 hexadecimal digits each';

-- The bloom filter on keys finds the rows.
CREATE VIEW IF NOT EXISTS portal_links DEFINER = views SQL SECURITY DEFINER AS
SELECT
    received_at, event_time, link, lower(hex(a_key)) AS a_id, a_kind, lower(hex(b_key)) AS b_id, b_kind, outcome, reason,
    moved_count, message_id, trace_id, link_generation, link_partition, link_offset, step
FROM identity_links
WHERE environment_id = {environment: String}
    AND (a_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        OR b_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16)))
ORDER BY link_generation DESC, link_offset DESC, step DESC, link_partition DESC
LIMIT 1 BY link_generation, link_partition, link_offset, step
COMMENT 'portal_links(environment = …, identities = […]): decisions about the given identities, newest first';

CREATE VIEW IF NOT EXISTS portal_unlinks DEFINER = views SQL SECURITY DEFINER AS
SELECT lower(hex(identity_key)) AS identity_id, link_generation, link_offset, side, unlinked_at
FROM identity_unlinks FINAL
WHERE environment_id = {environment: String}
    AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
COMMENT 'portal_unlinks(environment = …, identities = […]): unlinks of the given identities';

-- Client ids of the identities, if events still contain them. Within a day and event name, all rows of an owner have the same
-- ids, so the query uses identity_days and reads only the person's rows.
CREATE VIEW IF NOT EXISTS portal_raw_ids DEFINER = views SQL SECURITY DEFINER AS
SELECT lower(hex(named.1)) AS identity_id, min(named.2) AS id
FROM
(
    SELECT arrayJoin([(anonymous_key, anonymous_id), (user_key, user_id), (from_key, from_id), (to_key, to_id)]) AS named
    FROM {{all}}.events
    WHERE identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        AND (environment_id, event_name, toDate(event_time), identity_key) IN
        (
            SELECT environment_id, event_name, day, identity_key
            FROM {{all}}.identity_days
            WHERE environment_id = {environment: String}
                AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        )
)
WHERE named.2 != '' AND named.1 IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
GROUP BY named.1
COMMENT 'portal_raw_ids(environment = …, identities = […]): ids of the given identities as sent by clients; for accounts that may read raw ids';
