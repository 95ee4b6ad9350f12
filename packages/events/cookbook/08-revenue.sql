-- Revenue by day
--
-- The revenue per day and currency, the number of paying people, and the average revenue per paying person. Amounts are
-- added in hundredths, because floating-point sums depend on the order of addition.
--
-- The query requires columns for price and currency. Two commands create them from the properties of the same names:
-- `npm run columns -- add --name price --path price --type Float64` and
-- `npm run columns -- add --name currency --path currency --type 'LowCardinality(String)'`.
-- If there are few purchases per day, use the next recipe, which does not require these columns.
--
-- Parameters:
--   environment   id of your environment. The commands use production; in a local stack, use demo-development
--   since, until  first day and the day after the last day, in the time zone of your project
--   event         name of the purchase event
--
-- Cost: reads only purchases between since and until, and only their name, time, owner and the two columns.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production&param_since=2026-06-08&param_until=2026-07-13&param_event=purchase" --data-binary @08-revenue.sql
--   clickhouse-client --user analyst --database playline --param_environment=production --param_since=2026-06-08 --param_until=2026-07-13 --param_event=purchase < 08-revenue.sql
SELECT
    local_day AS day,
    property_currency AS currency,
    count() AS purchases,
    uniqExactIf(person_key, person_id IS NOT NULL) AS payers,
    sum(toInt64(round(property_price * 100))) / 100 AS revenue,
    revenue / payers AS revenue_per_payer
FROM analysis_events
WHERE environment_id = {environment: String} AND local_day >= {since: Date} AND local_day < {until: Date}
    AND event_time >= addDays({since: Date}, -1) AND event_time < addDays({until: Date}, 1)
    AND event_name = {event: String} AND property_price IS NOT NULL
GROUP BY day, currency
ORDER BY day, currency
