-- A copy repeats the id, type, time, name and owner of a message and folds. A client that uses an id for another message has sent
-- another message: dropping it would lose data. Copies have the same time, so they are in the same month, and months are
-- folded one by one. Conditions on columns of the key are evaluated first, because copies agree in them and ClickHouse compares
-- only such conditions with rows that are not folded yet: one message by its id takes 30 ms instead of 49.
--
-- The view selects `*`, so that it shows the columns that `npm run columns` adds to events.
CREATE VIEW IF NOT EXISTS events_exact DEFINER = views SQL SECURITY DEFINER AS
SELECT * FROM events FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1, optimize_move_to_prewhere_if_final = 1
COMMENT 'One row for each message: of its copies the one received first. Filter by environment_id, and by event_time where possible.';

ALTER TABLE events_exact {{comments of events}};

-- The person is found at query time, so a merge of two persons rewrites no event. The dictionary has the persons as of its load,
-- and the join has the links since then, so a link counts as soon as it is stored. The join is nullable for clients that set
-- join_use_nulls, as some drivers do.
--
-- The texts of events_exact and recent_overrides are repeated here, because ClickHouse plans a view inside a view separately,
-- which is a seventh of the time of a day's count. Keys are compared and chosen as UUIDs, which are numbers: a tenth of the time
-- of a day's people.
CREATE VIEW IF NOT EXISTS events_identified DEFINER = views SQL SECURITY DEFINER AS
WITH toUUID('00000000-0000-0000-0000-000000000000') AS no_person,
    reinterpretAsUUID(event.identity_key) AS identity,
    dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(event.identity_key), (no_person, no_person)) AS settled,
    ifNull(recent.person, no_person) AS linked
SELECT
    event.*,
    reinterpretAsFixedString(if(linked != no_person, linked, if(settled.1 = identity, settled.2, identity))) AS person_key
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
COMMENT 'events_exact and person_key: the person of the owner; zero bytes for an event without an owner.';

ALTER TABLE events_identified {{comments of events}},
    COMMENT COLUMN person_key 'Person of the owner at the time of the query; zero bytes without an owner';
