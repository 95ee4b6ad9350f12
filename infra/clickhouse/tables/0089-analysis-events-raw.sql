-- For people who ask questions and may read raw ids. Ids, pages, properties and traits are what clients sent: any of them
-- may name somebody. Columns named property_… are those that `npm run columns` has added.
CREATE OR REPLACE VIEW analysis_events_raw DEFINER = views SQL SECURITY DEFINER AS
WITH event.identity_key = toFixedString('', 16) AS is_nobodys
SELECT
    environment_id, type, event_name, event_time,
    toDateTime(event_time, 'UTC') AS event_second,
    toUInt64(toUnixTimestamp64Milli(event_time)) AS event_millisecond,
    toDate(event_time) AS event_day,
    received_at, message_id,
    person_key,
    if(is_nobodys, NULL, lower(hex(person_key))) AS person_id,
    if(is_nobodys, NULL, lower(hex(identity_key))) AS identity_id,
    session_id, surface, consent_level, library, library_version, locale, timezone, screen, screen_density, browser_language,
    replaceRegexpAll(page_path, '/[^/]*[0-9@%][^/]*', '/:id') AS page_route,
    decodeURLFormComponent(extractURLParameter(page_url, 'utm_campaign')) AS campaign,
    domainWithoutWWW(page_referrer) AS referrer_domain,
    COLUMNS('^property_'),
    anonymous_id, user_id, identity_type, from_id, from_type, to_id, to_type, device_id, user_agent,
    page_url, page_path, page_referrer, page_title, properties, traits, trace_id
FROM events_identified AS event
WHERE NOT test
COMMENT 'Events as analysts ask for them, with raw ids and all that clients sent. One row a message, without tests. Nobody has no person_id, so count people with uniqExact(person_id).'
