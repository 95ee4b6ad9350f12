-- Revenue by day, from raw properties
--
-- Like the previous recipe, but without the two columns. The query requires an account that may read raw properties.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  first day and the day after the last day, in UTC
--   event         name of the purchase event
--
-- Cost: reads and parses all properties of purchases between since and until: four times the bytes of the previous recipe,
-- or more with larger properties.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13&param_event=purchase" --data-binary @09-revenue-of-raw-properties.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 --param_event=purchase < 09-revenue-of-raw-properties.sql
SELECT
    toDate(event_time) AS day,
    JSONExtractString(properties, 'currency') AS currency,
    count() AS purchases,
    uniqExactIf(person_key, person_id IS NOT NULL) AS payers,
    sum(toInt64(round(JSONExtractFloat(properties, 'price') * 100))) / 100 AS revenue,
    revenue / payers AS revenue_per_payer
FROM analysis_events_raw
WHERE environment_id = {environment: String} AND event_time >= {since: Date} AND event_time < {until: Date}
    AND event_name = {event: String} AND JSONHas(properties, 'price')
GROUP BY day, currency
ORDER BY day, currency
