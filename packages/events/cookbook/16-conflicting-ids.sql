-- Data quality: message ids used for several messages
--
-- Ids that a client used for more than one message, with details of the messages. All of the messages are stored and
-- counted. Only copies with the same id, type, time, name and owner are removed. Many conflicting ids indicate that a
-- client generates ids incorrectly or changes messages before it resends them.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  first day and the day after the last day, in UTC
--   ids           maximum number of ids; ids with the most messages come first
--
-- Cost: reads all events between since and until, and their ids twice. Stores every id in memory, about 150 bytes per id.
-- Query days or weeks at a time.
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
