-- Days in UTC come from identity_days, which is small. Days in another time zone come from events, because identity_days has no
-- hours. Of the events of a UTC day, some belong to the next or the previous local day, so each of these days is one branch: in a
-- branch, the day is a monotonic function of event_time, and a filter by day reads only the granules of this day.
CREATE VIEW IF NOT EXISTS {{rows}}.person_days
(
    environment_id LowCardinality(String) COMMENT 'Environment of the person',
    day Date COMMENT 'Day of the events in the time zone of the project, according to the client clock',
    event_name LowCardinality(String) COMMENT 'Name of the events; empty for types without a name',
    person_key FixedString(16) COMMENT 'Person at query time',
    person_id String COMMENT 'person_key as 32 hexadecimal digits'
)
DEFINER = views SQL SECURITY DEFINER AS
WITH (SELECT (groupArray(environment_id), groupArray(time_zone)) FROM current_environment_settings) AS zones,
    dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(active.identity_key),
    (toUUID('00000000-0000-0000-0000-000000000000'), toUUID('00000000-0000-0000-0000-000000000000'))) AS dictionary_entry
SELECT
    active.environment_id AS environment_id, active.day AS day, active.event_name AS event_name,
    multiIf(ifNull(recent.person_key, toFixedString('', 16)) != toFixedString('', 16), assumeNotNull(recent.person_key),
        reinterpretAsUUID(active.identity_key) = dictionary_entry.1, reinterpretAsFixedString(dictionary_entry.2),
        active.identity_key) AS person_key,
    lower(hex(person_key)) AS person_id
FROM
(
    SELECT environment_id, day, event_name, identity_key
    FROM identity_days
    WHERE NOT test AND environment_id NOT IN (SELECT environment_id FROM current_environment_settings WHERE time_zone != 'UTC')
    UNION ALL
    SELECT environment_id, toDate(event_time) AS day, event_name, identity_key
    FROM events
    WHERE NOT test AND identity_key != toFixedString('', 16) AND type != 'alias'
        AND environment_id IN (SELECT environment_id FROM current_environment_settings WHERE time_zone != 'UTC')
        AND toDate(formatDateTime(event_time, '%F', transform(environment_id, zones.1, zones.2, 'UTC'))) = day
    UNION ALL
    SELECT environment_id, toDate(event_time) + 1 AS day, event_name, identity_key
    FROM events
    WHERE NOT test AND identity_key != toFixedString('', 16) AND type != 'alias'
        AND environment_id IN (SELECT environment_id FROM current_environment_settings WHERE is_ahead)
        AND toDate(formatDateTime(event_time, '%F', transform(environment_id, zones.1, zones.2, 'UTC'))) = day
    UNION ALL
    SELECT environment_id, toDate(event_time) - 1 AS day, event_name, identity_key
    FROM events
    WHERE NOT test AND identity_key != toFixedString('', 16) AND type != 'alias'
        AND environment_id IN (SELECT environment_id FROM current_environment_settings WHERE is_behind)
        AND toDate(formatDateTime(event_time, '%F', transform(environment_id, zones.1, zones.2, 'UTC'))) = day
) AS active
LEFT ANY JOIN recent_overrides AS recent ON active.identity_key = recent.identity_key
COMMENT 'Active days and event names of each person, without test messages. A person can have several rows per day, so count people with uniqExact(person_key).';

-- A time zone as a parameter is constant, so no row is formatted, which halves the time.
CREATE VIEW IF NOT EXISTS person_days_in DEFINER = views SQL SECURITY DEFINER AS
WITH dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(active.identity_key),
    (toUUID('00000000-0000-0000-0000-000000000000'), toUUID('00000000-0000-0000-0000-000000000000'))) AS dictionary_entry
SELECT
    active.environment_id AS environment_id, active.day AS day, active.event_name AS event_name,
    multiIf(ifNull(recent.person_key, toFixedString('', 16)) != toFixedString('', 16), assumeNotNull(recent.person_key),
        reinterpretAsUUID(active.identity_key) = dictionary_entry.1, reinterpretAsFixedString(dictionary_entry.2),
        active.identity_key) AS person_key,
    lower(hex(person_key)) AS person_id
FROM
(
    SELECT environment_id, toDate(event_time) AS day, event_name, identity_key
    FROM {{all}}.events
    WHERE NOT test AND identity_key != toFixedString('', 16) AND type != 'alias'
        AND toDate(event_time, {zone: String}) = day
    UNION ALL
    SELECT environment_id, toDate(event_time) + 1 AS day, event_name, identity_key
    FROM {{all}}.events
    WHERE NOT test AND identity_key != toFixedString('', 16) AND type != 'alias'
        AND toDate(event_time, {zone: String}) = day
    UNION ALL
    SELECT environment_id, toDate(event_time) - 1 AS day, event_name, identity_key
    FROM {{all}}.events
    WHERE NOT test AND identity_key != toFixedString('', 16) AND type != 'alias'
        AND toDate(event_time, {zone: String}) = day
) AS active
LEFT ANY JOIN recent_overrides AS recent ON active.identity_key = recent.identity_key
COMMENT 'person_days_in(zone = …): person_days in another time zone, such as Asia/Tokyo. Reads events; filter by environment_id and day.';

-- In a cluster, the subquery of identities makes the home look up persons, whose recent overrides fit only its own dictionary.
CREATE VIEW IF NOT EXISTS persons_raw
(
    environment_id LowCardinality(String) COMMENT 'Environment of the person',
    person_key FixedString(16) COMMENT 'Person at query time',
    person_id String COMMENT 'person_key as 32 hexadecimal digits',
    identities UInt64 COMMENT 'Number of identities of the person that have at least one event',
    members Array(String) COMMENT 'Identities of the person that have at least one event, 32 hexadecimal digits each',
    first_seen_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) COMMENT 'Time of the first event, capped at one minute after the gateway received the event',
    first_seen_day Date COMMENT 'Day of first_seen_at in the time zone of the project',
    last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Time of the last event, capped at one minute after the gateway received the event',
    touch Tuple(surface String, page_url String, page_referrer String) COMMENT 'Surface, page and referrer of the first page event, or of the first event if there is no page event',
    first_surface String COMMENT 'Surface of the first touch',
    first_route String COMMENT 'Path of the first page with :id in place of segments that contain a digit, @ or %',
    first_referrer_domain String COMMENT 'Domain of the first referrer, without www',
    first_campaign String COMMENT 'utm_campaign of the first page',
    first_page_url String COMMENT 'URL of the first page',
    first_page_referrer String COMMENT 'URL of the first referrer',
    traits String COMMENT 'Traits of the last identify message that has traits, a JSON object'
)
DEFINER = views SQL SECURITY DEFINER AS
WITH (SELECT (groupArray(environment_id), groupArray(time_zone)) FROM current_environment_settings) AS zones,
    splitByChar(char(255), substring(max(first_touch), 18)) AS parts
SELECT
    environment_id, person_key, lower(hex(person_key)) AS person_id,
    uniqExact(identity_key) AS identities,
    arraySort(groupUniqArray(lower(hex(identity_key)))) AS members,
    min(identity_first_seen_at) AS first_seen_at,
    toDate(formatDateTime(first_seen_at, '%F', transform(environment_id, zones.1, zones.2, 'UTC'))) AS first_seen_day,
    max(identity_last_active_at) AS last_seen_at,
    CAST((parts[1], parts[2], parts[3]), 'Tuple(surface String, page_url String, page_referrer String)') AS touch,
    touch.surface AS first_surface,
    replaceRegexpAll(path(touch.page_url), '/[^/0-9@%]*[0-9@%][^/]*', '/:id') AS first_route,
    domainWithoutWWW(touch.page_referrer) AS first_referrer_domain,
    decodeURLFormComponent(extractURLParameter(touch.page_url, 'utm_campaign')) AS first_campaign,
    touch.page_url AS first_page_url,
    touch.page_referrer AS first_page_referrer,
    substring(max(latest_traits), 33) AS traits
FROM
(
    WITH dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(identity.identity_key),
        (toUUID('00000000-0000-0000-0000-000000000000'), toUUID('00000000-0000-0000-0000-000000000000'))) AS dictionary_entry
    SELECT
        identity.environment_id AS environment_id, identity.identity_key AS identity_key,
        multiIf(ifNull(recent.person_key, toFixedString('', 16)) != toFixedString('', 16), assumeNotNull(recent.person_key),
            reinterpretAsUUID(identity.identity_key) = dictionary_entry.1, reinterpretAsFixedString(dictionary_entry.2),
            identity.identity_key) AS person_key,
        identity.first_seen_at AS identity_first_seen_at, identity.last_active_at AS identity_last_active_at,
        identity.first_touch AS first_touch, identity.latest_traits AS latest_traits
    FROM (SELECT * FROM {{all}}.identities) AS identity
    LEFT ANY JOIN recent_overrides AS recent ON identity.identity_key = recent.identity_key
    WHERE NOT identity.test
)
GROUP BY environment_id, person_key
COMMENT 'Persons with at least one event, aggregated over all identities, with the first page and the latest traits. Event times are capped at one minute after receipt. Without test messages.';

CREATE VIEW IF NOT EXISTS persons DEFINER = views SQL SECURITY DEFINER AS
SELECT environment_id, person_key, person_id, identities, members, first_seen_at, first_seen_day, last_seen_at,
    first_surface, first_route, first_referrer_domain, first_campaign
FROM persons_raw
COMMENT 'Persons with at least one event, aggregated over all identities, with first and last event and first touch. Without test messages.';

ALTER TABLE persons {{comments of persons_raw}};

-- identity_days contains the leading columns of the sorting key of the person's events. The result is small enough to be
-- deduplicated here. A filter finds the person's members first, because FINAL alone would read granules that the filter excludes.
-- EXCEPT is for clusters, in which version is not a materialized column. A client could change the setting, but the latest
-- override of an identity can be in any partition.
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
FROM {{all}}.events
WHERE environment_id = {environment: String} AND type != 'alias' AND (event_name, toDate(event_time), identity_key) IN
(
    SELECT event_name, day, identity_key
    FROM {{all}}.identity_days
    WHERE environment_id = {environment: String} AND identity_key GLOBAL IN members
)
ORDER BY version DESC
LIMIT 1 BY environment_id, event_name, event_time, identity_key, message_id, type
SETTINGS do_not_merge_across_partitions_select_final = 0
COMMENT 'person_timeline(environment = …, person = …): all events of a person except aliases, including test messages, over all identities; person is a person_id of 32 hexadecimal digits. For the key of an identity that now belongs to another person, the view returns only the events of that identity';

-- The identities of the user id, then their persons, then all identities of these persons, each computed once as a constant. A user
-- id has few identities, one per identity type, so their keys and those of their persons are compared as arrays.
CREATE VIEW IF NOT EXISTS user_timeline DEFINER = views SQL SECURITY DEFINER AS
WITH
    (
        SELECT groupUniqArray(identity_key) FROM {{all}}.identities
        WHERE environment_id = {environment: String} AND user_hash = sipHash128(trimBoth({user: String}, ' \t\r\n'))
    ) AS found,
    (
        SELECT mapFromArrays(groupArray(identity_key), groupArray(person_key)) FROM identity_overrides FINAL
        WHERE environment_id = {environment: String} AND has(found, identity_key)
    ) AS overridden,
    arrayMap(identity -> if(mapContains(overridden, identity), overridden[identity], identity), found) AS persons,
    (
        SELECT mapFromArrays(groupArray(identity_key), groupArray(person_key)) FROM identity_overrides FINAL
        WHERE environment_id = {environment: String}
            AND (has(persons, identity_key) OR identity_key IN
            (
                SELECT identity_key FROM identity_overrides
                WHERE environment_id = {environment: String} AND has(persons, person_key)
            ))
    ) AS candidates,
    arrayConcat(
        mapKeys(mapFilter((identity, person) -> has(persons, person), candidates)),
        arrayFilter(person -> NOT mapContains(candidates, person), persons)) AS members
SELECT * EXCEPT version, lower(hex(identity_key)) AS identity_id
FROM {{all}}.events
WHERE environment_id = {environment: String} AND type != 'alias' AND (event_name, toDate(event_time), identity_key) IN
(
    SELECT event_name, day, identity_key
    FROM {{all}}.identity_days
    WHERE environment_id = {environment: String} AND identity_key GLOBAL IN (SELECT arrayJoin(members))
)
ORDER BY version DESC
LIMIT 1 BY environment_id, event_name, event_time, identity_key, message_id, type
SETTINGS do_not_merge_across_partitions_select_final = 0
COMMENT 'user_timeline(environment = …, user = …): person_timeline of the person whose raw user id is given. If several identity types have the id, the view returns the events of all their persons';
