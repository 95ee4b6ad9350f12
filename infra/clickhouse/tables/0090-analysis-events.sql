-- The same without ids, free text and whole addresses. What is left are words of clients all the same: a campaign or a
-- part of a path may name somebody where they write it so. A property is here once somebody has made it a column, so has looked at it.
CREATE OR REPLACE VIEW analysis_events DEFINER = views SQL SECURITY DEFINER AS
SELECT * EXCEPT (anonymous_id, user_id, identity_type, from_id, from_type, to_id, to_type, device_id, user_agent,
    page_url, page_path, page_referrer, page_title, properties, traits, trace_id)
FROM analysis_events_raw
COMMENT 'Events as analysts ask for them: one row a message, without tests, without raw ids. Nobody has no person_id, so count people with uniqExact(person_id). Filter by environment_id and event_time.'
