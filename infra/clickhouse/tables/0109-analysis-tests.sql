-- Who tries a client, or looks for what a release sends, asks here. The columns are those of analysis_events.
CREATE OR REPLACE VIEW analysis_tests DEFINER = views SQL SECURITY DEFINER AS
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
    COLUMNS('^property_')
FROM events_identified AS event
WHERE test
COMMENT 'Messages that bear test, which analysis_events and all that follows from it leave out. One row a message, without raw ids. Filter by environment_id and event_time.'
