-- First touch: sources of new people
--
-- The people whose first event was in the time range, by campaign, referrer and surface of that event, and how many of
-- them have sent a goal event since. The campaign is the utm_campaign of the person's first page event, or of the first
-- event if there are no page events. It is empty if the event has no utm_campaign.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  first day and the day after the last day, in the time zone of your project
--   event         name of the goal event
--
-- Cost: reads the first touch of all identities in the environment and the active days of identities with the goal event,
-- but no events.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13&param_event=purchase" --data-binary @10-first-touch.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 --param_event=purchase < 10-first-touch.sql
WITH converted_people AS
(
    SELECT person_key
    FROM person_days
    WHERE environment_id = {environment: String} AND day >= {since: Date} AND event_name = {event: String}
)
SELECT
    first_campaign AS campaign,
    first_referrer_domain AS referrer_domain,
    first_surface AS surface,
    count() AS people,
    countIf(person_key IN converted_people) AS converted,
    converted / people AS share
FROM persons
WHERE environment_id = {environment: String} AND first_seen_day >= {since: Date} AND first_seen_day < {until: Date}
GROUP BY campaign, referrer_domain, surface
ORDER BY people DESC, campaign, referrer_domain, surface
LIMIT 100
