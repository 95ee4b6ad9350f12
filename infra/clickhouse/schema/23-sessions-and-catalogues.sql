-- The view counts exact events instead of inserted rows, so resent messages do not change a count. A session belongs to the day
-- on which it began, so the query reads one more local day on each side. Times are capped as in identities.last_active_at, so a
-- client clock that is ahead does not create a session of twenty hours.
CREATE VIEW IF NOT EXISTS sessions_between DEFINER = views SQL SECURITY DEFINER AS
WITH (SELECT (groupArray(environment_id), groupArray(time_zone)) FROM current_environment_settings) AS zones
SELECT
    environment_id, min(local_day) AS day, session_id, person_key,
    if(person_key = toFixedString('', 16), NULL, lower(hex(person_key))) AS person_id,
    min(event_time) AS started_at,
    max(event_time) AS ended_at,
    dateDiff('second', started_at, ended_at) AS seconds,
    count() AS events,
    argMin(event_surface, (event_time, message_id)) AS surface,
    replaceRegexpAll(argMinIf(page_path, (event_time, message_id), page_path != ''), '/[^/]*[0-9@%][^/]*', '/:id') AS entry_route
FROM
(
    SELECT environment_id, session_id, person_key, least(event.event_time, event.received_at + INTERVAL 1 MINUTE) AS event_time,
        message_id, surface AS event_surface, page_path, transform(event.environment_id, zones.1, zones.2, 'UTC') AS time_zone,
        if(time_zone = 'UTC', toDate(event.event_time), toDate(formatDateTime(event.event_time, '%F', time_zone))) AS sent_day,
        if(time_zone = 'UTC', toDate(event_time), toDate(formatDateTime(event_time, '%F', time_zone))) AS local_day
    FROM {{all}}.events_identified AS event
    WHERE environment_id = {environment: String} AND NOT test AND session_id != ''
        AND event.event_time >= {since: Date} - INTERVAL 2 DAY AND event.event_time < {until: Date} + INTERVAL 2 DAY
        AND sent_day >= {since: Date} - 1 AND sent_day < {until: Date} + 1
)
GROUP BY environment_id, session_id, person_key
HAVING day >= {since: Date} AND day < {until: Date}
COMMENT 'sessions_between(environment = …, since = …, until = …): sessions per person that began on the days from since until the day before until, in the time zone of the project, and have no event on the day before since. A session shared by two persons is counted for each of them. Event times are capped at one minute after receipt.';

-- For tools that cannot pass parameters. A session belongs to the day of its first event, which is known only after the events of
-- the days before and after it have been read. Each branch therefore assigns the events of a day to another day, as in
-- person_days, so that a filter by day reads only five days of events. Capped times are on earlier days, and local days differ by
-- one more. A query for many days takes four to six times as long as sessions_between.
CREATE VIEW IF NOT EXISTS sessions
(
    environment_id LowCardinality(String) COMMENT 'Environment of the session',
    day Date COMMENT 'Day of started_at in the time zone of the project. Filter by environment_id and day',
    session_id String COMMENT 'Session id from the client',
    person_key FixedString(16) COMMENT 'Person at query time; zero bytes for a session without an owner',
    person_id Nullable(String) COMMENT 'person_key as 32 hexadecimal digits; NULL for a session without an owner',
    started_at DateTime64(3, 'UTC') COMMENT 'Time of the first event, capped at one minute after the gateway received the event',
    ended_at DateTime64(3, 'UTC') COMMENT 'Time of the last event until the next day, capped in the same way',
    seconds Int64 COMMENT 'Time between the first and the last event',
    events UInt64 COMMENT 'Number of events',
    surface LowCardinality(String) COMMENT 'Surface of the first event',
    entry_route String COMMENT 'Path of the first page, with :id in place of segments that contain a digit, @ or %'
)
DEFINER = views SQL SECURITY DEFINER AS
WITH (SELECT (groupArray(environment_id), groupArray(time_zone)) FROM current_environment_settings) AS zones,
    transform(environment_id, zones.1, zones.2, 'UTC') AS time_zone
SELECT
    environment_id, day, session_id, person_key,
    if(person_key = toFixedString('', 16), NULL, lower(hex(person_key))) AS person_id,
    min(event_time) AS started_at,
    max(event_time) AS ended_at,
    dateDiff('second', started_at, ended_at) AS seconds,
    count() AS events,
    argMin(event_surface, (event_time, message_id)) AS surface,
    replaceRegexpAll(argMinIf(page_path, (event_time, message_id), page_path != ''), '/[^/]*[0-9@%][^/]*', '/:id') AS entry_route
FROM
(
    SELECT *, if(time_zone = 'UTC', toDate(event_time), toDate(formatDateTime(event_time, '%F', time_zone))) AS local_day
    FROM
    (
        SELECT environment_id, toDate(event.event_time) AS day, session_id, person_key, message_id, surface AS event_surface, page_path,
            least(event.event_time, event.received_at + INTERVAL 1 MINUTE) AS event_time
        FROM {{all}}.events_identified AS event
        WHERE NOT test AND session_id != ''
        UNION ALL
        SELECT environment_id, toDate(event.event_time) + 1 AS day, session_id, person_key, message_id, surface AS event_surface, page_path,
            least(event.event_time, event.received_at + INTERVAL 1 MINUTE) AS event_time
        FROM {{all}}.events_identified AS event
        WHERE NOT test AND session_id != ''
        UNION ALL
        SELECT environment_id, toDate(event.event_time) - 1 AS day, session_id, person_key, message_id, surface AS event_surface, page_path,
            least(event.event_time, event.received_at + INTERVAL 1 MINUTE) AS event_time
        FROM {{all}}.events_identified AS event
        WHERE NOT test AND session_id != ''
        UNION ALL
        SELECT environment_id, toDate(event.event_time) + 2 AS day, session_id, person_key, message_id, surface AS event_surface, page_path,
            least(event.event_time, event.received_at + INTERVAL 1 MINUTE) AS event_time
        FROM {{all}}.events_identified AS event
        WHERE NOT test AND session_id != '' AND environment_id IN (SELECT environment_id FROM current_environment_settings WHERE time_zone != 'UTC')
        UNION ALL
        SELECT environment_id, toDate(event.event_time) - 2 AS day, session_id, person_key, message_id, surface AS event_surface, page_path,
            least(event.event_time, event.received_at + INTERVAL 1 MINUTE) AS event_time
        FROM {{all}}.events_identified AS event
        WHERE NOT test AND session_id != '' AND (event.event_time > event.received_at + INTERVAL 1 MINUTE OR environment_id IN (SELECT environment_id FROM current_environment_settings WHERE time_zone != 'UTC'))
        UNION ALL
        SELECT environment_id, toDate(event.event_time) - 3 AS day, session_id, person_key, message_id, surface AS event_surface, page_path,
            least(event.event_time, event.received_at + INTERVAL 1 MINUTE) AS event_time
        FROM {{all}}.events_identified AS event
        WHERE NOT test AND session_id != '' AND event.event_time > event.received_at + INTERVAL 1 MINUTE AND environment_id IN (SELECT environment_id FROM current_environment_settings WHERE time_zone != 'UTC')
    )
    WHERE abs(day - local_day) <= 1
)
GROUP BY environment_id, day, session_id, person_key
HAVING min(local_day) = day
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
SELECT environment_id, type, event_name, count() AS events, events / sum(events) OVER (PARTITION BY environment_id) AS share,
    min(event_time) AS first_seen_at, max(event_time) AS last_seen_at
FROM {{all}}.analysis_events
WHERE event_time >= now() - INTERVAL 30 DAY
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
