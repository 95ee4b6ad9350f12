-- The overview of an environment. Planning a query costs more than reading these small tables, so there are only two views,
-- which the portal queries at the same time, so that two cores plan them. Times are epoch seconds. `since` and `before` are the starts of the shown and of the previous time range, and `step`
-- is the length of the counted intervals. Players are counted a minute before the messages of the same time.
CREATE VIEW IF NOT EXISTS portal_overview_counts DEFINER = views SQL SECURITY DEFINER AS
SELECT * FROM
(
    SELECT
        concat(kind, 's') AS part, name, field, library, library_version, toUInt32(0) AS at_s, current AS value, previous,
        sum(current) OVER (PARTITION BY kind) AS total, sum(previous) OVER (PARTITION BY kind) AS previous_total
    FROM
    (
        SELECT
            kind, name, field, library, library_version,
            sumIf(messages, start_at >= {since: UInt32}) AS current, sumIf(messages, start_at < {since: UInt32}) AS previous
        FROM event_counts FINAL
        WHERE environment_id = {environment: String} AND step_s = {step: UInt16} AND start_at >= {before: UInt32} AND start_at < {until: UInt32}
        GROUP BY kind, name, field, library, library_version
        HAVING current + previous > 0
    )
    ORDER BY current DESC, name, field, library, library_version
    LIMIT 50 BY kind
)
UNION ALL
SELECT if(kind = 'client', 'accepted', 'rejected'), '', '', '', '', toUnixTimestamp(start_at), sum(messages), 0, 0, 0
FROM event_counts FINAL
WHERE environment_id = {environment: String} AND step_s = {step: UInt16} AND start_at >= {since: UInt32} AND start_at < {until: UInt32} AND kind != 'event'
GROUP BY kind, start_at
COMMENT 'portal_overview_counts(environment = …, step = …, before = …, since = …, until = …): most frequent events, clients and errors, and messages per interval';

CREATE VIEW IF NOT EXISTS portal_overview_state DEFINER = views SQL SECURITY DEFINER AS
SELECT
    if(kind = 'all', 'players', 'event players') AS part, name, '' AS field, '' AS library, '' AS library_version,
    toUnixTimestamp(max(until_at)) AS at_s, sumIf(players, until_at = latest_at) AS value, sumIf(players, until_at = previous_at) AS previous,
    toUInt64(0) AS total, toUInt64(0) AS previous_total
FROM
(
    SELECT
        kind, name, players, until_at, max(until_at) OVER () AS latest_at,
        maxIf(until_at, until_at <= toDateTime({until: UInt32}) - {span: UInt32}) OVER () AS previous_at
    FROM player_counts FINAL
    WHERE environment_id = {environment: String} AND span_s = {span: UInt32} AND until_at <= toDateTime({until: UInt32}) + 60
)
WHERE until_at IN (latest_at, previous_at)
GROUP BY kind, name
ORDER BY value DESC, name
LIMIT 1000 BY kind
UNION ALL
SELECT
    'delay', '', '', '', '', 0,
    toUInt64(quantileExactWeightedIf(0.99)(delay_ms, messages, delay_ms > 0 AND start_at >= {since: UInt32})),
    toUInt64(quantileExactWeightedIf(0.99)(delay_ms, messages, delay_ms > 0 AND start_at < {since: UInt32})), 0, 0
FROM event_delays FINAL
WHERE environment_id = {environment: String} AND step_s = {step: UInt16} AND start_at >= {before: UInt32} AND start_at < {until: UInt32}
GROUP BY environment_id
UNION ALL
SELECT 'first', '', '', '', '', toUnixTimestamp(min(at)), 1, 0, 0, 0
FROM
(
    SELECT start_at AS at FROM event_delays FINAL WHERE environment_id = {environment: String} AND step_s = 3600 AND messages > 0
    UNION ALL
    -- The first message is shown before its minute is counted.
    SELECT minute_at FROM {{all}}.counted_minutes WHERE environment_id = {environment: String} AND minute_at > now() - INTERVAL 20 HOUR
)
HAVING count() > 0
UNION ALL
SELECT 'erasures', '', '', '', '', 0, count(), 0, 0, 0
FROM erasure_requests FINAL
WHERE environment_id = {environment: String}
    AND erasure_id NOT IN (SELECT erasure_id FROM erasure_receipts WHERE environment_id = {environment: String})
GROUP BY environment_id
UNION ALL
SELECT 'mints', '', '', '', '', 0, countIf(status = 'pending'), 0, 0, 0
FROM mint_requests FINAL
WHERE environment_id = {environment: String} AND requested_at >= fromUnixTimestamp64Milli(1000 * toInt64({until: UInt32}), 'UTC') - INTERVAL 90 DAY
GROUP BY environment_id
COMMENT 'portal_overview_state(environment = …, step = …, before = …, since = …, until = …, span = …): players, delay and open work of an environment';
