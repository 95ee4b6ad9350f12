-- A person's timeline
--
-- All actions of one person on all devices and accounts, in order, including test events. The query requires an account
-- that may read raw data. Copy the person_id from any view. If you have only a user id, read user_timeline(environment = …,
-- user = …) instead of person_timeline. For any other raw id, `npm run identity -- resolve` prints the person key.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   person        person_id, 32 hexadecimal digits
--   since, until  first day and the day after the last day, in UTC
--
-- Cost: reads only the events of this person, which are found through the person's active days.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_person=00112233445566778899aabbccddeeff&param_since=2026-06-08&param_until=2026-07-13" --data-binary @11-person-timeline.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_person=00112233445566778899aabbccddeeff --param_since=2026-06-08 --param_until=2026-07-13 < 11-person-timeline.sql
SELECT event_time, type, event_name, test, surface, session_id, page_path, properties, message_id
FROM person_timeline(environment = {environment: String}, person = {person: String})
WHERE event_time >= {since: Date} AND event_time < {until: Date}
ORDER BY event_time, message_id
