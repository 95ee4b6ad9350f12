-- Events and the person behind each, found at query time: a merge of two persons rewrites no event. The dictionary says
-- what was settled at its load, the join what was linked since, so a link counts as soon as it stands.
-- Nullable where the one who asks has join_use_nulls set, as some drivers do.
CREATE OR REPLACE VIEW events_identified DEFINER = views SQL SECURITY DEFINER AS
WITH dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(event.identity_key),
    (toUUID('00000000-0000-0000-0000-000000000000'), toUUID('00000000-0000-0000-0000-000000000000'))) AS settled
SELECT
    event.*,
    multiIf(ifNull(recent.person_key, toFixedString('', 16)) != toFixedString('', 16), assumeNotNull(recent.person_key),
        reinterpretAsUUID(event.identity_key) = settled.1, reinterpretAsFixedString(settled.2),
        event.identity_key) AS person_key
FROM events_exact AS event
LEFT ANY JOIN recent_overrides AS recent ON event.identity_key = recent.identity_key
COMMENT 'events_exact and person_key: the person of the owner; zero bytes for an event that nobody owns.'
