-- Data quality: message ids used for several messages
--
-- Ids that a client used for more than one message, with what these messages are. All of them are stored and count: only
-- a copy, with the same id, type, time, name and owner, is left out. Many such ids mean that a client makes its ids badly,
-- or changes messages before it sends them again.
--
-- Change:
--   environment   id of your environment; the commands have production, a local stack has demo-development
--   since, until  first day, and the day after the last, in UTC
--   ids           how many ids, those with the most messages first
--
-- Cost: reads all events from since to until, their ids twice, and holds every id in memory, some 150 bytes each: query
-- days or weeks.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13&param_ids=100" --data-binary @16-conflicting-ids.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 --param_ids=100 < 16-conflicting-ids.sql
SELECT
    message_id,
    count() AS messages,
    uniqExact(identity_id) AS owners,
    arraySort(groupUniqArray(if(event_name = '', type, event_name))) AS names,
    arraySort(groupUniqArray(concat(library, ' ', library_version))) AS clients,
    min(event_time) AS first_at,
    max(event_time) AS last_at
FROM analysis_events
WHERE environment_id = {environment: String} AND event_time >= {since: Date} AND event_time < {until: Date}
    AND message_id IN
    (
        SELECT message_id
        FROM analysis_events
        WHERE environment_id = {environment: String} AND event_time >= {since: Date} AND event_time < {until: Date}
        GROUP BY message_id
        HAVING count() > 1
    )
GROUP BY message_id
ORDER BY messages DESC, message_id
LIMIT {ids: UInt32}
