-- Messages as stored, including copies. The portal adds conditions on the columns, which ClickHouse moves into the view, so that
-- the sorting key and the bloom filters on keys apply. The portal starts with a short time range, because all its days are read.
-- Times are epoch milliseconds. At `until` itself, where the previous page ended, the view returns only messages whose id is
-- less than `before`.
CREATE VIEW IF NOT EXISTS portal_messages DEFINER = views SQL SECURITY DEFINER AS
SELECT
    message_id, type, event_name, event_time, received_at, surface, library, library_version, test, consent_level,
    anonymous_id, user_id, identity_type, identity_key, anonymous_key, from_key, to_key, trace_id, properties
FROM {{all}}.events
WHERE environment_id = {environment: String}
    AND event_time >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND event_time <= fromUnixTimestamp64Milli({until: Int64}, 'UTC')
    AND (event_time < fromUnixTimestamp64Milli({until: Int64}, 'UTC') OR message_id < toUUIDOrZero({before: String}))
COMMENT 'portal_messages(environment = …, since = …, until = …, before = …): messages as stored, including copies';

-- One complete message, found by the bloom filter on ids in a few granules and in the parts that were not merged yet, regardless
-- of the number of rows.
CREATE VIEW IF NOT EXISTS portal_message DEFINER = views SQL SECURITY DEFINER AS
SELECT
    message_id, type, event_name, event_time, received_at, surface, library, library_version, test, consent_level,
    anonymous_id, user_id, identity_type, identity_key, trace_id,
    from_id, from_type, to_id, to_type, device_id, session_id, user_agent, locale, timezone, screen, screen_density,
    page_url, page_path, page_referrer, page_title, browser_language, properties, traits
FROM {{all}}.events
WHERE environment_id = {environment: String} AND message_id = toUUIDOrZero({message: String})
ORDER BY version DESC
LIMIT 1 BY type, event_name, event_time, identity_key
COMMENT 'portal_message(environment = …, message = …): messages with the given id; a client may have reused an id';
