-- The ids that clients sent for these identities, where events still have them: of each day and name one row of an owner
-- says all that the others say of it, so a person is found by identity_days, and no more than its own rows are read.
CREATE OR REPLACE VIEW portal_raw_ids DEFINER = views SQL SECURITY DEFINER AS
SELECT lower(hex(named.1)) AS identity_id, min(named.2) AS id
FROM
(
    SELECT arrayJoin([(anonymous_key, anonymous_id), (user_key, user_id), (from_key, from_id), (to_key, to_id)]) AS named
    FROM events
    WHERE identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        AND (environment_id, event_name, toDate(event_time), identity_key) IN
        (
            SELECT environment_id, event_name, day, identity_key
            FROM identity_days
            WHERE environment_id = {environment: String}
                AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        )
)
WHERE named.2 != '' AND named.1 IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
GROUP BY named.1
COMMENT 'portal_raw_ids(environment = …, identities = […]): ids as clients sent them; for whoever may see them'
