-- A list of messages without their long columns. It reads the days of the span (of one event name if given), so the portal begins
-- with a short span. Copies are returned as stored, and the portal folds them within its page. Empty texts filter nothing. Times
-- are epoch milliseconds. At `until` itself only messages before the id `before` are read; that is where the previous page ended.
CREATE VIEW IF NOT EXISTS portal_messages DEFINER = views SQL SECURITY DEFINER AS
SELECT
    message_id, type, event_name, event_time, received_at, surface, library, library_version, test, consent_level,
    anonymous_id, user_id, identity_type, lower(hex(identity_key)) AS identity_id, trace_id
FROM {{all}}.events
WHERE environment_id = {environment: String}
    AND event_time >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND event_time <= fromUnixTimestamp64Milli({until: Int64}, 'UTC')
    AND (event_time < fromUnixTimestamp64Milli({until: Int64}, 'UTC') OR message_id < toUUIDOrZero({before: String}))
    AND ({type: String} = '' OR type = {type: String})
    AND ({name: String} = '' OR event_name = {name: String})
    AND ({surface: String} = '' OR surface = {surface: String})
    AND ({test: String} = '' OR test = ({test: String} = 'true'))
    AND ({identity: String} = '' OR identity_key = toFixedString(unhex({identity: String}), 16))
COMMENT 'portal_messages(environment = …, since = …, until = …, before = …, type = …, name = …, surface = …, test = …, identity = …): messages as stored, copies included';

-- The messages of portal_messages that name one of these identities: as owner, as the visitor before, or as a side of an alias.
-- The filters over keys select the granules, so a person costs their own granules and not the days of the span.
CREATE VIEW IF NOT EXISTS portal_messages_of_people DEFINER = views SQL SECURITY DEFINER AS
SELECT
    message_id, type, event_name, event_time, received_at, surface, library, library_version, test, consent_level,
    anonymous_id, user_id, identity_type, lower(hex(identity_key)) AS identity_id, trace_id
FROM {{all}}.events
WHERE environment_id = {environment: String}
    AND event_time >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND event_time <= fromUnixTimestamp64Milli({until: Int64}, 'UTC')
    AND (event_time < fromUnixTimestamp64Milli({until: Int64}, 'UTC') OR message_id < toUUIDOrZero({before: String}))
    AND ({name: String} = '' OR event_name = {name: String})
    AND (identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        OR anonymous_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        OR from_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        OR to_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16)))
COMMENT 'portal_messages_of_people(environment = …, since = …, until = …, before = …, name = …, identities = […]): messages that name one of these identities, copies included';

-- One message, whole. It is found by the filter over ids: a few granules, however many rows the table has.
CREATE VIEW IF NOT EXISTS portal_message DEFINER = views SQL SECURITY DEFINER AS
SELECT
    message_id, type, event_name, event_time, received_at, surface, library, library_version, test, consent_level,
    anonymous_id, user_id, identity_type, lower(hex(identity_key)) AS identity_id, trace_id,
    from_id, from_type, to_id, to_type, device_id, session_id, user_agent, locale, timezone, screen, screen_density,
    page_url, page_path, page_referrer, page_title, browser_language, properties, traits
FROM {{all}}.events
WHERE environment_id = {environment: String} AND message_id = toUUIDOrZero({message: String})
ORDER BY version DESC
LIMIT 1 BY type, event_name, event_time, identity_key
COMMENT 'portal_message(environment = …, message = …): messages with an id; a client may have used it for more than one message';
