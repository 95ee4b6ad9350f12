-- Sessions are joined from the parts in session_days, of which each belongs to one identity, so links and unlinks need no change of
-- stored rows. A session belongs to the day on which it began, so the query reads the day before as well, one more because a
-- clock that is ahead can put an event on the next day, and one more on each side for days that do not begin at midnight in UTC.
--
-- Times are capped at one minute after receipt, so a client clock that is ahead does not create a session of twenty hours. The end
-- is reduced by the greatest lead of the clock instead, because later copies would change a capped maximum. The definition of
-- recent_overrides is repeated, because planning nested views takes a third of the time of a query for one day, and parts are
-- grouped by a hash, which is smaller than the names.
CREATE VIEW IF NOT EXISTS sessions_between DEFINER = views SQL SECURITY DEFINER AS
WITH (SELECT if(count() = 0, 'UTC', argMax(time_zone, version)) FROM environment_settings WHERE environment_id = {environment: String}) AS time_zone
SELECT
    any(environment) AS environment_id,
    if(time_zone = 'UTC', toDate(started_at), toDate(formatDateTime(started_at, '%F', time_zone))) AS day,
    any(session) AS session_id,
    any(person) AS person_key,
    lower(hex(person_key)) AS person_id,
    min(first_at) AS started_at,
    greatest(started_at, max(last_at) - toIntervalMillisecond(max(lead_ms))) AS ended_at,
    dateDiff('second', started_at, ended_at) AS seconds,
    uniqExactArray(messages) AS events,
    argMin(part_surface, (first_at, part_surface)) AS surface,
    replaceRegexpAll(substring(max(entry), 17), '/[^/0-9@%]*[0-9@%][^/]*', '/:id') AS entry_route
FROM
(
    WITH dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(part.identity_key),
        (toUUID('00000000-0000-0000-0000-000000000000'), toUUID('00000000-0000-0000-0000-000000000000'))) AS dictionary_entry
    SELECT
        part.environment_id AS environment, part.session_id AS session,
        multiIf(ifNull(recent.person_key, toFixedString('', 16)) != toFixedString('', 16), assumeNotNull(recent.person_key),
            reinterpretAsUUID(part.identity_key) = dictionary_entry.1, reinterpretAsFixedString(dictionary_entry.2),
            part.identity_key) AS person,
        part.first_at AS first_at, part.last_at AS last_at, part.lead_ms AS lead_ms, part.messages AS messages,
        part.surface AS part_surface, part.entry AS entry
    FROM
    (
        SELECT * FROM {{all}}.session_days
        WHERE environment_id = {environment: String}
            AND day >= {since: Date} - if(time_zone = 'UTC', 1, 2) AND day < {until: Date} + if(time_zone = 'UTC', 2, 3)
    ) AS part
    LEFT ANY JOIN
    (
        SELECT identity_key, argMax(person_key, version) AS person_key
        FROM identity_overrides
        WHERE stored_at > fromUnixTimestamp64Milli(toInt64(dictGet('identity_persons', 'version', toUInt64(18446744073709551615))), 'UTC') - INTERVAL 2 MINUTE
        GROUP BY identity_key
        HAVING max(version) + 1 > dictGetOrDefault('identity_persons', 'version', reinterpretAsUInt64(identity_key), toUInt64(0))
    ) AS recent ON part.identity_key = recent.identity_key
)
GROUP BY sipHash128(session, person)
HAVING day >= {since: Date} AND day < {until: Date}
COMMENT 'sessions_between(environment = …, since = …, until = …): sessions per person that began on the days from since until the day before until, in the time zone of the project, and have no event on the day before since. A session shared by two persons is counted for each of them. Event times are capped at one minute after receipt.';

-- For tools that cannot pass parameters. A session consists of the parts of two successive days in UTC, of which the first follows
-- a day without a part. It belongs to the day of its first event, which is the first of these days or, in another time zone or
-- with a clock that is ahead, one near it. Each branch assigns the parts of a day as the first or second part, or as a part of the
-- day before, to one of these days, so that a filter by day reads only a few days. Groups without a first part, with a part of
-- the day before, or on another day are removed.
CREATE VIEW IF NOT EXISTS sessions
(
    environment_id LowCardinality(String) COMMENT 'Environment of the session',
    day Date COMMENT 'Day of started_at in the time zone of the project. Filter by environment_id and day',
    session_id String COMMENT 'Session id from the client',
    person_key FixedString(16) COMMENT 'Person at query time',
    person_id String COMMENT 'person_key as 32 hexadecimal digits',
    started_at DateTime64(3, 'UTC') COMMENT 'Time of the first event, capped at one minute after the gateway received the event',
    ended_at DateTime64(3, 'UTC') COMMENT 'Time of the last event until the end of the next day in UTC, reduced by the greatest time by which an event was capped',
    seconds Int64 COMMENT 'Time between started_at and ended_at',
    events UInt64 COMMENT 'Number of events, without aliases',
    surface LowCardinality(String) COMMENT 'Surface of the first event',
    entry_route String COMMENT 'Path of the first page, with :id in place of segments that contain a digit, @ or %'
)
DEFINER = views SQL SECURITY DEFINER AS
WITH (SELECT (groupArray(environment_id), groupArray(time_zone)) FROM current_environment_settings) AS zones,
    transform(environment_id, zones.1, zones.2, 'UTC') AS time_zone
SELECT
    environment_id, session_day AS day, session_id, person_key,
    lower(hex(person_key)) AS person_id,
    min(first_at) AS started_at,
    greatest(started_at, max(last_at) - toIntervalMillisecond(max(lead_ms))) AS ended_at,
    dateDiff('second', started_at, ended_at) AS seconds,
    uniqExactArray(messages) AS events,
    argMin(part_surface, (first_at, part_surface)) AS surface,
    replaceRegexpAll(substring(max(entry), 17), '/[^/0-9@%]*[0-9@%][^/]*', '/:id') AS entry_route
FROM
(
    WITH dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(part.identity_key),
        (toUUID('00000000-0000-0000-0000-000000000000'), toUUID('00000000-0000-0000-0000-000000000000'))) AS dictionary_entry
    SELECT
        part.environment_id AS environment_id, part.session_day AS session_day, part.first_day AS first_day, part.day AS part_day,
        part.session_id AS session_id,
        multiIf(ifNull(recent.person_key, toFixedString('', 16)) != toFixedString('', 16), assumeNotNull(recent.person_key),
            reinterpretAsUUID(part.identity_key) = dictionary_entry.1, reinterpretAsFixedString(dictionary_entry.2),
            part.identity_key) AS person_key,
        part.first_at AS first_at, part.last_at AS last_at, part.lead_ms AS lead_ms, part.messages AS messages,
        part.surface AS part_surface, part.entry AS entry
    FROM
    (
        SELECT *, part.day AS first_day, part.day AS session_day
        FROM {{all}}.session_days AS part
        UNION ALL
        SELECT *, part.day - 1 AS first_day, part.day - 1 AS session_day
        FROM {{all}}.session_days AS part
        UNION ALL
        SELECT *, part.day + 1 AS first_day, part.day + 1 AS session_day
        FROM {{all}}.session_days AS part
        UNION ALL
        SELECT *, part.day AS first_day, part.day - 1 AS session_day
        FROM {{all}}.session_days AS part
        UNION ALL
        SELECT *, part.day - 1 AS first_day, part.day - 2 AS session_day
        FROM {{all}}.session_days AS part
        UNION ALL
        SELECT *, part.day + 1 AS first_day, part.day AS session_day
        FROM {{all}}.session_days AS part
        UNION ALL
        SELECT *, part.day AS first_day, part.day + 1 AS session_day
        FROM {{all}}.session_days AS part
        WHERE environment_id IN (SELECT environment_id FROM current_environment_settings WHERE is_ahead)
        UNION ALL
        SELECT *, part.day - 1 AS first_day, part.day AS session_day
        FROM {{all}}.session_days AS part
        WHERE environment_id IN (SELECT environment_id FROM current_environment_settings WHERE is_ahead)
        UNION ALL
        SELECT *, part.day + 1 AS first_day, part.day + 2 AS session_day
        FROM {{all}}.session_days AS part
        WHERE environment_id IN (SELECT environment_id FROM current_environment_settings WHERE is_ahead)
        UNION ALL
        SELECT *, part.day AS first_day, part.day - 2 AS session_day
        FROM {{all}}.session_days AS part
        WHERE environment_id IN (SELECT environment_id FROM current_environment_settings WHERE is_behind)
        UNION ALL
        SELECT *, part.day - 1 AS first_day, part.day - 3 AS session_day
        FROM {{all}}.session_days AS part
        WHERE environment_id IN (SELECT environment_id FROM current_environment_settings WHERE is_behind)
        UNION ALL
        SELECT *, part.day + 1 AS first_day, part.day - 1 AS session_day
        FROM {{all}}.session_days AS part
        WHERE environment_id IN (SELECT environment_id FROM current_environment_settings WHERE is_behind)
    ) AS part
    LEFT ANY JOIN recent_overrides AS recent ON part.identity_key = recent.identity_key
)
GROUP BY environment_id, session_day, first_day, session_id, person_key
HAVING min(part_day) = first_day
    AND session_day = if(time_zone = 'UTC', toDate(started_at), toDate(formatDateTime(started_at, '%F', time_zone)))
COMMENT 'Sessions per person. A session that has no event for a whole day begins again with the next event. A session shared by two persons is counted for each of them. Filter by environment_id and day. For many days, sessions_between is faster.';

CREATE VIEW IF NOT EXISTS event_catalogue
(
    environment_id LowCardinality(String) COMMENT 'Environment of the events',
    type LowCardinality(String) COMMENT 'Type of the events: track, page, screen, identify or alias',
    event_name LowCardinality(String) COMMENT 'Name of the events; empty for types without a name',
    events UInt64 COMMENT 'Number of events',
    share Float64 COMMENT 'Fraction of all events of the environment',
    first_seen_at DateTime64(3, 'UTC') COMMENT 'Time of the first of these events',
    last_seen_at DateTime64(3, 'UTC') COMMENT 'Time of the last of these events'
)
DEFINER = views SQL SECURITY DEFINER AS
SELECT environment_id, type, event_name, sum(day.events) AS events, events / sum(events) OVER (PARTITION BY environment_id) AS share,
    min(day.first_seen_at) AS first_seen_at, max(day.last_seen_at) AS last_seen_at
FROM {{all}}.events_per_day AS day
WHERE event_day > today() - 30
GROUP BY environment_id, type, event_name
COMMENT 'Event names of the last 30 days, with their event count, fraction of all events, and first and last event time. Filter by environment_id.';

-- Clients choose property names, so a name may itself identify a person, for example the name of a friend. The view shows a name
-- that the project declared safe, or one that looks like a word and that at least five identities sent. It counts all others
-- together. The pseudo property '' counts the events of a name.
CREATE VIEW IF NOT EXISTS property_catalogue
(
    environment_id LowCardinality(String) COMMENT 'Environment of the events',
    event_name LowCardinality(String) COMMENT 'Name of the events; empty for types without a name',
    property_name String COMMENT 'Name of the property; (hidden) for all names that are not declared safe, and that contain a digit, @ or % or were sent by fewer than five identities',
    is_safe Bool COMMENT 'Flag that indicates whether the project declares the property safe, so that safe_properties contains it',
    types Array(String) COMMENT 'JSON types of the values',
    events UInt64 COMMENT 'Number of events with the property; for (hidden) the number of hidden properties in all events',
    share Float64 COMMENT 'Fraction of the events with this name that have the property',
    first_seen_at DateTime64(3, 'UTC') COMMENT 'Time of the first of these events',
    last_seen_at DateTime64(3, 'UTC') COMMENT 'Time of the last of these events'
)
DEFINER = views SQL SECURITY DEFINER AS
WITH (SELECT (groupArray(environment_id), groupArray(safe_properties)) FROM current_environment_settings) AS declared
SELECT
    environment_id, event_name,
    multiIf(name = '' OR is_declared, name, senders >= 5 AND NOT match(name, '[0-9@%]') AND length(name) <= 64, name, '(hidden)') AS property_name,
    is_declared::Bool AS is_safe,
    arraySort(groupUniqArrayArray(types_of_name)) AS types,
    sum(events_of_name) AS events,
    events / max(of_name) AS share,
    min(first_at) AS first_seen_at, max(last_at) AS last_seen_at
FROM
(
    SELECT
        environment_id, event_name, property.1 AS name,
        has(declared.2[indexOf(declared.1, environment_id)], name) AS is_declared,
        uniq(identity_key) AS senders,
        groupUniqArray(property.2) AS types_of_name,
        count() AS events_of_name,
        maxIf(events_of_name, name = '') OVER (PARTITION BY environment_id, event_name) AS of_name,
        min(event_time) AS first_at, max(event_time) AS last_at
    FROM {{all}}.events_exact
    ARRAY JOIN arrayConcat([('', '')], arrayMap(each -> (each, toString(JSONType(properties, each))), arrayFilter(each -> each != '', JSONExtractKeys(properties)))) AS property
    WHERE NOT test AND event_time >= now() - INTERVAL 30 DAY
    GROUP BY environment_id, event_name, name
)
WHERE name != ''
GROUP BY environment_id, event_name, property_name, is_safe
COMMENT 'Properties per event name in the last 30 days, with their types and the fraction of events that contain them, without values. Filter by environment_id, and by event_name where possible.';

CREATE VIEW IF NOT EXISTS analysis_environments
(
    environment_id LowCardinality(String) COMMENT 'Environment',
    time_zone String COMMENT 'Time zone of the days in person_days, sessions, persons and local_day',
    safe_properties Array(String) COMMENT 'Names of the properties that the project declares safe'
)
DEFINER = views SQL SECURITY DEFINER AS
SELECT environment_id, time_zone, safe_properties
FROM current_environment_settings
COMMENT 'Time zone and declared properties of each environment.';
