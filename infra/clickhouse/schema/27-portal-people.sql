-- Times are capped as in persons. Includes test messages. Messages are counted, not copies; the query reads narrow columns of all
-- events of the identities, so it exceeds the limits of the account if one of them is a placeholder.
CREATE VIEW IF NOT EXISTS portal_profile DEFINER = views SQL SECURITY DEFINER AS
SELECT {environment: String} AS environment_id, first_seen_at, last_seen_at, first_surface, traits, events, sessions, last_surface
FROM
(
    SELECT
        min(identity.first_seen_at) AS first_seen_at,
        max(last_active_at) AS last_seen_at, splitByChar(char(255), substring(max(first_touch), 18))[1] AS first_surface,
        substring(max(latest_traits), 33) AS traits
    FROM {{all}}.identities AS identity
    WHERE environment_id = {environment: String}
        AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
    HAVING count() > 0
) AS person
CROSS JOIN
(
    SELECT
        uniqExact(message_id, type, event_name, event_time, identity_key) AS events,
        uniqExactIf(session_id, session_id != '') AS sessions, argMax(surface, event_time) AS last_surface
    FROM {{all}}.events
    WHERE type != 'alias' AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        AND (environment_id, event_name, toDate(event_time), identity_key) IN
        (
            SELECT environment_id, event_name, day, identity_key
            FROM {{all}}.identity_days
            WHERE environment_id = {environment: String}
                AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        )
) AS counted
COMMENT 'portal_profile(environment = …, identities = […]): first and last event, latest traits, and numbers of messages and sessions of the given identities together; for accounts that may read raw ids';

-- Messages, link decisions and consent changes in one order, newest first, by time and then by id, so that a page continues
-- exactly after the last entry of the previous page. `entries` limits each part before wide columns are read. Links that changed
-- nothing are left out. 0 as `until` or `days` is no limit; event times may be a day ahead. An empty `show` returns all parts; `history` returns links and consents.
CREATE VIEW IF NOT EXISTS portal_timeline DEFINER = views SQL SECURITY DEFINER AS
WITH if({until: Int64} = 0, now64(3, 'UTC') + INTERVAL 2 DAY, fromUnixTimestamp64Milli({until: Int64}, 'UTC')) AS until_at,
    if({days: UInt32} = 0, toDateTime64(0, 3, 'UTC'), until_at - toIntervalDay({days: UInt32})) AS since_at
SELECT *
FROM
(
    SELECT
        'event' AS entry, event_time AS happened_at,
        lower(hex(sipHash128(event.message_id, type, event_name, identity_key))) AS id,
        toString(type) AS what, toString(event_name) AS name, toString(surface) AS origin, lower(hex(identity_key)) AS identity_id, '' AS kind,
        '' AS other_id, '' AS other_kind, toString(message_id) AS message_id, trace_id,
        concat('{', arrayStringConcat(arrayMap(field -> concat('"', field.1, '":', field.2), arrayFilter(field -> field.2 NOT IN ('', '""'), [
            ('receivedAt', toJSONString(received_at)), ('anonymousId', toJSONString(anonymous_id)), ('userId', toJSONString(user_id)),
            ('identityType', toJSONString(toString(identity_type))), ('deviceId', toJSONString(device_id)), ('sessionId', toJSONString(session_id)),
            ('consentLevel', toJSONString(toString(consent_level))), ('test', if(test, 'true', '')), ('library', toJSONString(toString(library))),
            ('libraryVersion', toJSONString(toString(library_version))), ('userAgent', toJSONString(toString(user_agent))),
            ('locale', toJSONString(toString(locale))), ('timezone', toJSONString(toString(timezone))), ('screen', toJSONString(toString(screen))),
            ('screenDensity', ifNull(toString(screen_density), '')), ('pageUrl', toJSONString(page_url)), ('pagePath', toJSONString(page_path)),
            ('pageReferrer', toJSONString(page_referrer)), ('pageTitle', toJSONString(page_title)),
            ('browserLanguage', toJSONString(toString(browser_language))), ('properties', properties), ('traits', traits)])), ','), '}') AS detail
    FROM {{all}}.events AS event
    WHERE {show: String} IN ('', 'events')
        AND (environment_id, event_name, toDate(event_time), identity_key, event.message_id, toUnixTimestamp64Milli(event_time), type) IN
        (
            SELECT environment_id, event_name, toDate(event_time), identity_key, message_id, toUnixTimestamp64Milli(event_time), type
            FROM {{all}}.events
            WHERE {show: String} IN ('', 'events') AND type != 'alias' AND event_time >= since_at
                AND (event_time < until_at OR event_time = until_at AND lower(hex(sipHash128(message_id, type, event_name, identity_key))) < {before: String})
                AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
                AND (environment_id, event_name, toDate(event_time), identity_key) IN
                (
                    SELECT environment_id, event_name, day, identity_key
                    FROM {{all}}.identity_days
                    WHERE environment_id = {environment: String}
                        AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
                        AND day >= toDate(since_at) AND day <= toDate(until_at)
                )
            ORDER BY event_time DESC, lower(hex(sipHash128(message_id, type, event_name, identity_key))) DESC
            LIMIT 1 BY environment_id, event_name, event_time, identity_key, message_id, type
            LIMIT {entries: UInt32}
        )
    ORDER BY version DESC
    LIMIT 1 BY environment_id, event_name, event_time, identity_key, event.message_id, type
    UNION ALL
    SELECT
        'link' AS entry, received_at AS happened_at, lower(hex(sipHash128(link_generation, link_partition, link_offset, step))) AS id,
        toString(link) AS what, toString(outcome) AS name, toString(reason) AS origin, lower(hex(a_key)) AS identity_id, toString(a_kind) AS kind,
        lower(hex(b_key)) AS other_id, toString(b_kind) AS other_kind, toString(message_id) AS message_id, trace_id, '' AS detail
    FROM identity_links
    WHERE {show: String} IN ('', 'identity', 'history') AND environment_id = {environment: String} AND (outcome != 'unchanged' OR reason != '')
        AND received_at >= since_at
        AND (received_at < until_at
            OR received_at = until_at AND lower(hex(sipHash128(link_generation, link_partition, link_offset, step))) < {before: String})
        AND (a_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
            OR b_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16)))
    ORDER BY happened_at DESC, id DESC
    LIMIT 1 BY link_generation, link_partition, link_offset, step
    LIMIT {entries: UInt32}
    UNION ALL
    SELECT
        'consent' AS entry, received_at AS happened_at, lower(hex(sipHash128(identity_key, kafka_partition, kafka_offset))) AS id,
        toString(status) AS what,
        if((identity_key, logged_at, trace_id) IN
        (
            SELECT identity_key, logged_at, trace_id FROM consents_current
            WHERE environment_id = {environment: String} AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        ), 'current', '') AS name,
        toString(source) AS origin, lower(hex(identity_key)) AS identity_id, 'anonymous' AS kind,
        '' AS other_id, '' AS other_kind, '' AS message_id, trace_id, '' AS detail
    FROM consent_log FINAL
    WHERE {show: String} IN ('', 'consent', 'history') AND environment_id = {environment: String}
        AND received_at >= since_at
        AND (received_at < until_at
            OR received_at = until_at AND lower(hex(sipHash128(identity_key, kafka_partition, kafka_offset))) < {before: String})
        AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
    ORDER BY happened_at DESC, id DESC
    LIMIT {entries: UInt32}
)
ORDER BY happened_at DESC, id DESC
LIMIT {entries: UInt32}
COMMENT 'portal_timeline(environment = …, identities = […], show = …, until = …, before = …, days = …, entries = …): messages, link decisions and consent changes of the given identities, newest first; for accounts that may read raw ids';

-- Finds out which of some possible ids exist: as owner of events, linked or refused, or with a consent. The client id is known if
-- events still contain it. Within a day and event name, all rows of an owner have the same ids, so the query uses identity_days
-- and reads only the person's rows.
CREATE VIEW IF NOT EXISTS portal_raw_ids DEFINER = views SQL SECURITY DEFINER AS
SELECT lower(hex(identity_key)) AS identity_id, minIf(client_id, client_id != '') AS id
FROM
(
    SELECT identity_key, '' AS client_id FROM {{all}}.identities
    WHERE environment_id = {environment: String} AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
    UNION ALL
    SELECT identity_key, '' AS client_id FROM identity_overrides
    WHERE environment_id = {environment: String} AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
    UNION ALL
    SELECT identity_key, '' AS client_id FROM consent_log
    WHERE environment_id = {environment: String} AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
    UNION ALL
    SELECT arrayJoin([a_key, b_key]) AS identity_key, '' AS client_id FROM identity_links
    WHERE environment_id = {environment: String}
        AND (a_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
            OR b_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16)))
    UNION ALL
    SELECT named.1 AS identity_key, named.2 AS client_id
    FROM
    (
        SELECT arrayJoin([(anonymous_key, anonymous_id), (user_key, user_id), (from_key, from_id), (to_key, to_id)]) AS named
        FROM {{all}}.events
        WHERE identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
            AND (environment_id, event_name, toDate(event_time), identity_key) IN
            (
                SELECT environment_id, event_name, day, identity_key
                FROM {{all}}.identity_days
                WHERE environment_id = {environment: String}
                    AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
            )
    )
)
WHERE identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
GROUP BY identity_key
COMMENT 'portal_raw_ids(environment = …, identities = […]): those of the given identities about which data is stored, with their ids as sent by clients, if known; for accounts that may read raw ids';
