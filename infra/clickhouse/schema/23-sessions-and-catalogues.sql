-- The view counts exact events instead of inserted rows, so resent messages do not change a count. A session belongs to the time
-- range in which it began, so the query reads one more day on each side. Times are capped as in identities.last_active_at, so a
-- client clock that is ahead does not create a session of twenty hours.
CREATE VIEW IF NOT EXISTS sessions DEFINER = views SQL SECURITY DEFINER AS
SELECT
    environment_id, session_id, person_key,
    if(person_key = toFixedString('', 16), NULL, lower(hex(person_key))) AS person_id,
    min(event_time) AS started_at,
    max(event_time) AS ended_at,
    dateDiff('second', started_at, ended_at) AS seconds,
    count() AS events,
    argMin(event_surface, (event_time, message_id)) AS surface,
    argMinIf(page_route, (event_time, message_id), page_route != '') AS entry_route
FROM
(
    SELECT environment_id, session_id, person_key, least(event.event_time, event.received_at + INTERVAL 1 MINUTE) AS event_time,
        message_id, surface AS event_surface, page_route
    FROM {{all}}.analysis_events AS event
    WHERE environment_id = {environment: String} AND session_id != ''
        AND event.event_time >= {since: DateTime64(3, 'UTC')} - INTERVAL 1 DAY AND event.event_time < {until: DateTime64(3, 'UTC')} + INTERVAL 1 DAY
)
GROUP BY environment_id, session_id, person_key
HAVING started_at >= {since: DateTime64(3, 'UTC')} AND started_at < {until: DateTime64(3, 'UTC')}
COMMENT 'sessions(environment = …, since = …, until = …): sessions per person whose first event is in the time range and that have no event on the day before. A session shared by two persons is counted for each of them. Event times are capped at one minute after receipt.';

CREATE VIEW IF NOT EXISTS event_catalogue DEFINER = views SQL SECURITY DEFINER AS
SELECT type, event_name, count() AS events, events / sum(events) OVER () AS share,
    min(event_time) AS first_seen_at, max(event_time) AS last_seen_at
FROM {{all}}.analysis_events
WHERE environment_id = {environment: String}
    AND event_time >= {since: DateTime64(3, 'UTC')} AND event_time < {until: DateTime64(3, 'UTC')}
GROUP BY type, event_name
COMMENT 'event_catalogue(environment = …, since = …, until = …): event names in a time range with their event count, fraction of all events, and first and last event time';

-- Clients choose property names, which may identify a person, so this view requires the right to read raw ids.
CREATE VIEW IF NOT EXISTS property_catalogue DEFINER = views SQL SECURITY DEFINER AS
SELECT
    event_name, property.1 AS property_name,
    arraySort(groupUniqArray(property.2)) AS types,
    count() AS events,
    events / any(of_name) AS share,
    min(event_time) AS first_seen_at, max(event_time) AS last_seen_at
FROM
(
    SELECT event_name, event_time, properties, count() OVER (PARTITION BY event_name) AS of_name
    FROM {{all}}.analysis_events_raw
    WHERE environment_id = {environment: String}
        AND event_time >= {since: DateTime64(3, 'UTC')} AND event_time < {until: DateTime64(3, 'UTC')}
)
ARRAY JOIN arrayMap(each -> (each, toString(JSONType(properties, each))), JSONExtractKeys(properties)) AS property
GROUP BY event_name, property_name
COMMENT 'property_catalogue(environment = …, since = …, until = …): properties per event name in a time range, with their types and the fraction of events that contain them';
