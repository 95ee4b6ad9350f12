-- For analysts who may read raw ids. Ids, pages, properties and traits contain what clients sent, which may identify a person.
-- The columns property_… are added by `npm run columns`.
CREATE VIEW IF NOT EXISTS analysis_events_raw DEFINER = views SQL SECURITY DEFINER AS
WITH event.identity_key = toFixedString('', 16) AS has_no_owner
SELECT
    environment_id, type, event_name, event_time,
    toDateTime(event_time, 'UTC') AS event_second,
    toUInt64(toUnixTimestamp64Milli(event_time)) AS event_millisecond,
    toDate(event_time) AS event_day,
    received_at, message_id,
    person_key,
    if(has_no_owner, NULL, lower(hex(person_key))) AS person_id,
    if(has_no_owner, NULL, lower(hex(identity_key))) AS identity_id,
    session_id, surface, consent_level, library, library_version, locale, timezone, screen, screen_density, browser_language,
    replaceRegexpAll(page_path, '/[^/]*[0-9@%][^/]*', '/:id') AS page_route,
    decodeURLFormComponent(extractURLParameter(page_url, 'utm_campaign')) AS campaign,
    domainWithoutWWW(page_referrer) AS referrer_domain,
    COLUMNS('^property_'),
    anonymous_id, user_id, identity_type, from_id, from_type, to_id, to_type, device_id, user_agent,
    page_url, page_path, page_referrer, page_title, properties, traits, trace_id
FROM events_identified AS event
WHERE NOT test
COMMENT 'Events for analysts, with raw ids and all client data. One row per message, without test messages. person_id is NULL for an event without an owner, so count people with uniqExact(person_id).';

ALTER TABLE analysis_events_raw {{comments of events_identified}},
    COMMENT COLUMN event_second 'event_time in seconds, for sequenceMatch and windowFunnel',
    COMMENT COLUMN event_millisecond 'event_time in epoch milliseconds, for windowFunnel',
    COMMENT COLUMN event_day 'Day of event_time in UTC',
    COMMENT COLUMN person_id 'person_key as 32 hexadecimal digits; NULL for an event without an owner',
    COMMENT COLUMN identity_id 'identity_key as 32 hexadecimal digits; NULL for an event without an owner',
    COMMENT COLUMN page_route 'context.pagePath with :id in place of segments that contain a digit, @ or %',
    COMMENT COLUMN campaign 'utm_campaign of context.pageUrl; empty when absent',
    COMMENT COLUMN referrer_domain 'Domain of context.pageReferrer without www; empty when absent';

-- Excludes ids, free text and complete URLs. The remaining columns still contain text supplied by the client: a campaign or
-- path segment can identify a person. A property appears here after an operator has turned it into a column.
CREATE VIEW IF NOT EXISTS analysis_events DEFINER = views SQL SECURITY DEFINER AS
SELECT * EXCEPT (anonymous_id, user_id, identity_type, from_id, from_type, to_id, to_type, device_id, user_agent,
    page_url, page_path, page_referrer, page_title, properties, traits, trace_id)
FROM analysis_events_raw
COMMENT 'Events for analysts, one row per message, without test messages or raw ids. person_id is NULL for an event without an owner, so count people with uniqExact(person_id). Filter by environment_id and event_time.';

ALTER TABLE analysis_events {{comments of analysis_events_raw}};

-- For developers who try out a client or check what a release sends. The view has the columns of analysis_events.
CREATE VIEW IF NOT EXISTS analysis_tests DEFINER = views SQL SECURITY DEFINER AS
WITH event.identity_key = toFixedString('', 16) AS has_no_owner
SELECT
    environment_id, type, event_name, event_time,
    toDateTime(event_time, 'UTC') AS event_second,
    toUInt64(toUnixTimestamp64Milli(event_time)) AS event_millisecond,
    toDate(event_time) AS event_day,
    received_at, message_id,
    person_key,
    if(has_no_owner, NULL, lower(hex(person_key))) AS person_id,
    if(has_no_owner, NULL, lower(hex(identity_key))) AS identity_id,
    session_id, surface, consent_level, library, library_version, locale, timezone, screen, screen_density, browser_language,
    replaceRegexpAll(page_path, '/[^/]*[0-9@%][^/]*', '/:id') AS page_route,
    decodeURLFormComponent(extractURLParameter(page_url, 'utm_campaign')) AS campaign,
    domainWithoutWWW(page_referrer) AS referrer_domain,
    COLUMNS('^property_')
FROM events_identified AS event
WHERE test
COMMENT 'Test messages, which all other analyst views exclude. One row per message, without raw ids. Filter by environment_id and event_time.';

ALTER TABLE analysis_tests {{comments of analysis_events_raw}};
