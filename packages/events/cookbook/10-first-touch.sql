-- First touch: where new people come from
--
-- People whose first event was in the span, by the campaign and the site that brought them, and by where they were
-- first seen; and how many of them have done what you hope for since then. The campaign is utm_campaign of the first page
-- event, or of the first event of a person without page events. It is empty if that event has none.
--
-- Change:
--   environment   id of your environment; the commands have production, a local stack has demo-development
--   since, until  first day, and the day after the last, in UTC
--   event         name of the event that you hope for
--
-- Cost: reads the first touch of all identities of the environment, and the days on which identities were active with that
-- event, but no events.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13&param_event=purchase" --data-binary @10-first-touch.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 --param_event=purchase < 10-first-touch.sql
WITH doers AS
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
    countIf(person_key IN doers) AS did,
    did / people AS share
FROM persons
WHERE environment_id = {environment: String} AND first_seen_at >= {since: Date} AND first_seen_at < {until: Date}
GROUP BY campaign, referrer_domain, surface
ORDER BY people DESC, campaign, referrer_domain, surface
LIMIT 100
