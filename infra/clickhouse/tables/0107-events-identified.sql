-- Events and the person behind each, found at query time: a merge of two persons rewrites no event. The dictionary says
-- what was settled at its load, the join what was linked since, so a link counts as soon as it stands.
-- Nullable where the one who asks has join_use_nulls set, as some drivers do.
-- The texts of events_exact and recent_overrides stand here once more: each view in a view is planned by itself, and that
-- is a seventh of the time of a day's count. Keys are compared and chosen as numbers, which a UUID is: a tenth of the time
-- of a day's people.
CREATE OR REPLACE VIEW events_identified DEFINER = views SQL SECURITY DEFINER AS
WITH toUUID('00000000-0000-0000-0000-000000000000') AS nobody,
    reinterpretAsUUID(event.identity_key) AS identity,
    dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(event.identity_key), (nobody, nobody)) AS settled,
    ifNull(recent.person, nobody) AS linked
SELECT
    event.*,
    reinterpretAsFixedString(if(linked != nobody, linked, if(settled.1 = identity, settled.2, identity))) AS person_key
FROM events AS event FINAL
LEFT ANY JOIN
(
    SELECT identity_key, reinterpretAsUUID(argMax(person_key, version)) AS person
    FROM identity_overrides
    WHERE stored_at > fromUnixTimestamp64Milli(toInt64(dictGet('identity_persons', 'version', toUInt64(18446744073709551615))), 'UTC') - INTERVAL 2 MINUTE
    GROUP BY identity_key
    HAVING max(version) + 1 > dictGetOrDefault('identity_persons', 'version', reinterpretAsUInt64(identity_key), toUInt64(0))
) AS recent ON event.identity_key = recent.identity_key
SETTINGS do_not_merge_across_partitions_select_final = 1, optimize_move_to_prewhere_if_final = 1
COMMENT 'events_exact and person_key: the person of the owner; zero bytes for an event that nobody owns.'
