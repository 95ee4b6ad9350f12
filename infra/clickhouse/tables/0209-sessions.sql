-- With the time of an event as in persons_raw since 0208: a clock ahead of ours makes no session of twenty hours.
-- From the exact events and never from what an insert fed, so a count is true however often a message came. A day more on
-- each side is read: a session belongs to the span in which it began.
CREATE OR REPLACE VIEW sessions DEFINER = views SQL SECURITY DEFINER AS
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
    FROM analysis_events AS event
    WHERE environment_id = {environment: String} AND session_id != ''
        AND event.event_time >= {since: DateTime64(3, 'UTC')} - INTERVAL 1 DAY AND event.event_time < {until: DateTime64(3, 'UTC')} + INTERVAL 1 DAY
)
GROUP BY environment_id, session_id, person_key
HAVING started_at >= {since: DateTime64(3, 'UTC')} AND started_at < {until: DateTime64(3, 'UTC')}
COMMENT 'sessions(environment = …, since = …, until = …): sessions of a person that began in the span: with a first event in it and none in the day before. A session that two people share is one of each. An event counts at most a minute after it was received, whatever time its client gave.'
