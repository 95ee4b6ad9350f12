-- Events and the person behind each, found at query time: a merge of two persons rewrites no event.
CREATE OR REPLACE VIEW events_identified SQL SECURITY INVOKER AS
SELECT
    event.*,
    if(event.identity_key = toFixedString('', 16) OR ifNull(person.person_key, toFixedString('', 16)) = toFixedString('', 16),
        event.identity_key, assumeNotNull(person.person_key)) AS person_key
FROM events_exact AS event
LEFT JOIN
(
    SELECT environment_id, identity_key, person_key
    FROM identity_overrides FINAL
) AS person ON event.environment_id = person.environment_id AND event.identity_key = person.identity_key
COMMENT 'events_exact and person_key: the person of the owner; zero bytes for an event that nobody owns.'
