-- One message, whole. Found by the filter over ids: a few granules, whatever the table holds.
CREATE OR REPLACE VIEW portal_message DEFINER = views SQL SECURITY DEFINER AS
SELECT
    message_id, type, event_name, event_time, received_at, surface, library, library_version, test, consent_level,
    anonymous_id, user_id, identity_type, lower(hex(identity_key)) AS identity_id, trace_id,
    from_id, from_type, to_id, to_type, device_id, session_id, user_agent, locale, timezone, screen, screen_density,
    page_url, page_path, page_referrer, page_title, browser_language, properties, traits
FROM events
WHERE environment_id = {environment: String} AND message_id = toUUIDOrZero({message: String})
ORDER BY version DESC
LIMIT 1 BY type, event_name, event_time, identity_key
COMMENT 'portal_message(environment = …, message = …): what stands under an id; a client may have used it for more than one message'
