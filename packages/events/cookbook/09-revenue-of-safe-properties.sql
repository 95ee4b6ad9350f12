-- Revenue by day, from safe properties
--
-- Like the previous recipe, but without the two columns. The project must declare the properties price and currency safe: on
-- the page Analyst settings of the portal, or with
-- `npm run projects -- analysis --project demo --safe-properties price,currency`.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  first day and the day after the last day, in the time zone of your project
--   event         name of the purchase event
--
-- Cost: reads all properties of purchases between since and until, and searches them for the two names: four times the bytes
-- of the previous recipe, or more with larger properties.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13&param_event=purchase" --data-binary @09-revenue-of-safe-properties.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 --param_event=purchase < 09-revenue-of-safe-properties.sql
SELECT
    local_day AS day,
    text AS currency,
    count() AS purchases,
    uniqExactIf(person_key, person_id IS NOT NULL) AS payers,
    sum(toInt64(round(number * 100))) / 100 AS revenue,
    revenue / payers AS revenue_per_payer
FROM properties_between(environment = {environment: String}, since = addDays({since: Date}, -1), until = addDays({until: Date}, 1),
    text = 'currency', number = 'price')
WHERE local_day >= {since: Date} AND local_day < {until: Date} AND event_name = {event: String} AND number IS NOT NULL
GROUP BY day, currency
ORDER BY day, currency
