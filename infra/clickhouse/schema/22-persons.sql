CREATE VIEW IF NOT EXISTS person_days
(
    environment_id LowCardinality(String) COMMENT 'Environment of the person',
    day Date COMMENT 'Day of the events in UTC, by the clock of the client',
    event_name LowCardinality(String) COMMENT 'Name of the events; empty when their type has none',
    person_key FixedString(16) COMMENT 'Person at the time of the query',
    person_id String COMMENT 'person_key as 32 hexadecimal digits'
)
DEFINER = views SQL SECURITY DEFINER AS
WITH dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(active.identity_key),
    (toUUID('00000000-0000-0000-0000-000000000000'), toUUID('00000000-0000-0000-0000-000000000000'))) AS settled
SELECT
    active.environment_id AS environment_id, active.day AS day, active.event_name AS event_name,
    multiIf(ifNull(recent.person_key, toFixedString('', 16)) != toFixedString('', 16), assumeNotNull(recent.person_key),
        reinterpretAsUUID(active.identity_key) = settled.1, reinterpretAsFixedString(settled.2),
        active.identity_key) AS person_key,
    lower(hex(person_key)) AS person_id
FROM {{all}}.identity_days AS active
LEFT ANY JOIN recent_overrides AS recent ON active.identity_key = recent.identity_key
WHERE NOT active.test
COMMENT 'Who was active on which day, and with which events; without tests. One row for each identity, so count people with uniqExact(person_key).';

CREATE VIEW IF NOT EXISTS persons_raw
(
    environment_id LowCardinality(String) COMMENT 'Environment of the person',
    person_key FixedString(16) COMMENT 'Person at the time of the query',
    person_id String COMMENT 'person_key as 32 hexadecimal digits',
    identities UInt64 COMMENT 'Number of identities of the person that have sent an event',
    members Array(String) COMMENT 'These identities, 32 hexadecimal digits each',
    first_seen_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) COMMENT 'Time of the first event by the clock of the client, not after last_seen_at',
    last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Time of the last event; an event counts at most a minute after the gateway received it',
    touch Tuple(surface String, page_url String, page_referrer String) COMMENT 'Surface, page and referrer of the first page event, or of the first event when there is none',
    first_surface String COMMENT 'Surface of the first touch',
    first_route String COMMENT 'Path of the first page; parts with a digit, @ or % are :id',
    first_referrer_domain String COMMENT 'Domain of the first referrer, without www',
    first_campaign String COMMENT 'utm_campaign of the first page',
    first_page_url String COMMENT 'Address of the first page',
    first_page_referrer String COMMENT 'Address of the first referrer',
    traits String COMMENT 'JSON object of the traits of the last identify'
)
DEFINER = views SQL SECURITY DEFINER AS
SELECT
    environment_id, person_key, lower(hex(person_key)) AS person_id,
    uniqExact(identity_key) AS identities,
    arraySort(groupUniqArray(lower(hex(identity_key)))) AS members,
    least(min(identity_first_seen_at), last_seen_at) AS first_seen_at,
    max(identity_last_active_at) AS last_seen_at,
    argMinMerge(first_touch) AS touch,
    touch.surface AS first_surface,
    replaceRegexpAll(path(touch.page_url), '/[^/]*[0-9@%][^/]*', '/:id') AS first_route,
    domainWithoutWWW(touch.page_referrer) AS first_referrer_domain,
    decodeURLFormComponent(extractURLParameter(touch.page_url, 'utm_campaign')) AS first_campaign,
    touch.page_url AS first_page_url,
    touch.page_referrer AS first_page_referrer,
    argMaxIfMerge(latest_traits) AS traits
FROM
(
    WITH dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(identity.identity_key),
        (toUUID('00000000-0000-0000-0000-000000000000'), toUUID('00000000-0000-0000-0000-000000000000'))) AS settled
    SELECT
        identity.environment_id AS environment_id, identity.identity_key AS identity_key,
        multiIf(ifNull(recent.person_key, toFixedString('', 16)) != toFixedString('', 16), assumeNotNull(recent.person_key),
            reinterpretAsUUID(identity.identity_key) = settled.1, reinterpretAsFixedString(settled.2),
            identity.identity_key) AS person_key,
        identity.first_seen_at AS identity_first_seen_at, identity.last_active_at AS identity_last_active_at,
        identity.first_touch AS first_touch, identity.latest_traits AS latest_traits
    FROM {{all}}.identities AS identity
    LEFT ANY JOIN recent_overrides AS recent ON identity.identity_key = recent.identity_key
    WHERE NOT identity.test
)
GROUP BY environment_id, person_key
COMMENT 'People who have sent an event: over all identities of the person, with the first page and the latest traits. An event counts at most a minute after it was received, whatever the clock of its client. Without tests.';

CREATE VIEW IF NOT EXISTS persons DEFINER = views SQL SECURITY DEFINER AS
SELECT environment_id, person_key, person_id, identities, members, first_seen_at, last_seen_at,
    first_surface, first_route, first_referrer_domain, first_campaign
FROM persons_raw
COMMENT 'People who have sent an event: over all identities of the person, first and last seen, and first touch. Without tests.';

ALTER TABLE persons {{comments of persons_raw}};

-- identity_days knows the front of the sorting key of the person's events. The rows are so few that their copies are folded
-- here. The members of the person are found through a filter first, because with FINAL alone ClickHouse would read granules that
-- the filter excludes. Rows are compared with these few members first, and then with the keys: a tenth of the time.
CREATE VIEW IF NOT EXISTS person_timeline DEFINER = views SQL SECURITY DEFINER AS
WITH members AS
(
    SELECT toFixedString(unhex({person: String}), 16) AS identity_key
    UNION ALL
    SELECT identity_key FROM identity_overrides FINAL
    WHERE environment_id = {environment: String} AND person_key = toFixedString(unhex({person: String}), 16)
        AND identity_key IN
        (
            SELECT identity_key FROM identity_overrides
            WHERE environment_id = {environment: String} AND person_key = toFixedString(unhex({person: String}), 16)
        )
)
SELECT * EXCEPT version, lower(hex(identity_key)) AS identity_id
FROM
(
    SELECT *, version
    FROM {{all}}.events
    WHERE type != 'alias' AND identity_key IN members AND (environment_id, event_name, toDate(event_time), identity_key) IN
    (
        SELECT environment_id, event_name, day, identity_key
        FROM {{all}}.identity_days
        WHERE environment_id = {environment: String} AND identity_key IN members
    )
    ORDER BY version DESC
    LIMIT 1 BY environment_id, event_name, event_time, identity_key, message_id, type
)
COMMENT 'person_timeline(environment = …, person = …): every event of a person except aliases, tests included, over all its identities; person is person_id, 32 hexadecimal digits. For a key that belongs to another person by now, its own events';
