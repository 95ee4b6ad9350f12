-- A list of messages without long columns. The query reads all days of the time range (for one event name if specified), so
-- the portal starts with a short time range. The view returns copies as stored, and the portal removes duplicates within a
-- page. An empty parameter does not filter. Times are epoch milliseconds. At `until` itself, where the previous page ended,
-- the view returns only messages whose id is less than `before`.
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
COMMENT 'portal_messages(environment = …, since = …, until = …, before = …, type = …, name = …, surface = …, test = …, identity = …): messages as stored, including copies';

-- Messages of portal_messages that refer to one of the identities: as owner, as anonymous visitor, or as an id of an alias.
-- The bloom filters on keys select the granules, so the query reads a person's granules instead of every day.
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
COMMENT 'portal_messages_of_people(environment = …, since = …, until = …, before = …, name = …, identities = […]): messages that refer to one of the identities, including copies';

-- One complete message, found by the bloom filter on ids in a few granules, regardless of the number of rows.
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
COMMENT 'portal_message(environment = …, message = …): messages with the given id; a client may have reused an id';
