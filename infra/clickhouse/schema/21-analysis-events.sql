-- What a project declares for its analysts: the time zone of its days, and the properties that are readable without raw ids.
-- Derived from the project records in audit_log, so a rebuild of audit_log from the compacted topic also fills this table.
CREATE TABLE IF NOT EXISTS environment_settings
(
    environment_id LowCardinality(String) COMMENT 'Environment to which the settings of its project apply',
    time_zone LowCardinality(String) COMMENT 'Time zone of the days in analyst views, such as Europe/Berlin; UTC if the project declares none or an unknown one',
    safe_properties Array(String) COMMENT 'Names of the properties that accounts without raw ids may read',
    version UInt64 COMMENT 'Revision of the project; the row with the greatest version applies'
)
ENGINE = {{engine ReplacingMergeTree(version)}}
ORDER BY environment_id
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Time zone and declared properties of each environment. Read with FINAL.';

-- An unknown time zone is stored as UTC, because it would fail every query. Checking it in each query would take as long as
-- planning the rest of a short query.
CREATE MATERIALIZED VIEW IF NOT EXISTS environment_settings_of_projects TO {{all}}.environment_settings AS
SELECT
    JSONExtractString(environment, 'id') AS environment_id,
    if(JSONExtractString(detail, 'timeZone') IN (SELECT time_zone FROM system.time_zones), JSONExtractString(detail, 'timeZone'), 'UTC') AS time_zone,
    JSONExtract(detail, 'safeProperties', 'Array(String)') AS safe_properties,
    revision AS version
FROM audit_log
ARRAY JOIN JSONExtractArrayRaw(detail, 'environments') AS environment
WHERE kind = 'project';

ALTER TABLE environment_settings_of_projects {{comments of environment_settings}};

-- Analyst views read the settings as a constant of the query: there are few environments, and a change applies to the next query.
-- A day in the time zone can differ from the day in UTC: some events are already on the next day, or still on the previous day.
CREATE VIEW IF NOT EXISTS current_environment_settings
(
    environment_id String COMMENT 'Environment',
    time_zone String COMMENT 'Time zone of the days in analyst views',
    is_ahead Bool COMMENT 'Flag that indicates whether local days can begin before the day in UTC',
    is_behind Bool COMMENT 'Flag that indicates whether local days can begin after the day in UTC',
    safe_properties Array(String) COMMENT 'Names of the properties that accounts without raw ids may read'
)
SQL SECURITY INVOKER AS
WITH [toDateTime('2026-01-15 12:00:00', 'UTC'), toDateTime('2026-07-15 12:00:00', 'UTC')] AS seasons
SELECT
    environment_id,
    time_zone,
    arrayExists(at -> toString(at, time_zone) > toString(at), seasons) AS is_ahead,
    arrayExists(at -> toString(at, time_zone) < toString(at), seasons) AS is_behind,
    safe_properties
FROM environment_settings FINAL
COMMENT 'Time zone and declared properties of each environment that the querying account may read';

-- For analysts who may read raw ids. Ids, pages, properties and traits contain what clients sent, which may identify a person.
-- The columns property_… are added by `npm run columns`. The query of events_identified is copied, and the table of settings is
-- read directly, because planning nested views takes a third of the time for counting a day.
CREATE VIEW IF NOT EXISTS {{rows}}.analysis_events_raw DEFINER = views SQL SECURITY DEFINER AS
WITH event.identity_key = toFixedString('', 16) AS has_no_owner,
    (SELECT (groupArray(environment_id), groupArray(time_zone), groupArray(safe_properties)) FROM environment_settings FINAL) AS settings,
    transform(event.environment_id, settings.1, settings.2, 'UTC') AS time_zone,
    settings.3[indexOf(settings.1, event.environment_id)] AS declared
SELECT
    environment_id, type, event_name, event_time,
    toDateTime(event_time, 'UTC') AS event_second,
    toUInt64(toUnixTimestamp64Milli(event_time)) AS event_millisecond,
    toDate(event_time) AS event_day,
    if(time_zone = 'UTC', toDate(event_time), toDate(formatDateTime(event_time, '%F', time_zone))) AS local_day,
    received_at, message_id,
    person_key,
    if(has_no_owner, NULL, lower(hex(person_key))) AS person_id,
    if(has_no_owner, NULL, lower(hex(identity_key))) AS identity_id,
    session_id, surface, consent_level, library, library_version, locale, timezone, screen, screen_density, browser_language,
    replaceRegexpAll(page_path, '/[^/0-9@%]*[0-9@%][^/]*', '/:id') AS page_route,
    decodeURLFormComponent(extractURLParameter(page_url, 'utm_campaign')) AS campaign,
    domainWithoutWWW(page_referrer) AS referrer_domain,
    concat('{', arrayStringConcat(arrayMap(property -> concat(toJSONString(property.1), ':', property.2),
        arrayFilter(property -> has(declared, property.1), JSONExtractKeysAndValuesRaw(properties))), ','), '}') AS safe_properties,
    COLUMNS('^property_'),
    anonymous_id, user_id, identity_type, from_id, from_type, to_id, to_type, device_id, user_agent,
    page_url, page_path, page_referrer, page_title, properties, traits, trace_id
FROM
(
    {{query of events_identified}}
) AS event
WHERE NOT test
COMMENT 'Events for analysts, with raw ids and all client data. One row per message, without test messages. person_id is NULL for an event without an owner, so count people with uniqExact(person_id).';

ALTER TABLE {{rows}}.analysis_events_raw {{comments of events_identified}},
    COMMENT COLUMN event_second 'event_time in seconds, for sequenceMatch and windowFunnel',
    COMMENT COLUMN event_millisecond 'event_time in epoch milliseconds, for windowFunnel',
    COMMENT COLUMN event_day 'Day of event_time in UTC',
    COMMENT COLUMN local_day 'Day of event_time in the time zone of the project. Filter by event_time as well, because local_day alone reads all events',
    COMMENT COLUMN safe_properties 'Properties that the project declares safe, a JSON object; other properties are removed',
    COMMENT COLUMN person_id 'person_key as 32 hexadecimal digits; NULL for an event without an owner',
    COMMENT COLUMN identity_id 'identity_key as 32 hexadecimal digits; NULL for an event without an owner',
    COMMENT COLUMN page_route 'context.pagePath with :id in place of segments that contain a digit, @ or %',
    COMMENT COLUMN campaign 'utm_campaign of context.pageUrl; empty when absent',
    COMMENT COLUMN referrer_domain 'Domain of context.pageReferrer without www; empty when absent';

-- Excludes ids, free text and complete URLs. The remaining columns still contain text supplied by the client: a campaign or
-- path segment can identify a person. A property appears here after the project has declared it safe, or after an operator has
-- turned it into a column.
CREATE VIEW IF NOT EXISTS {{rows}}.analysis_events DEFINER = views SQL SECURITY DEFINER AS
SELECT * EXCEPT (anonymous_id, user_id, identity_type, from_id, from_type, to_id, to_type, device_id, user_agent,
    page_url, page_path, page_referrer, page_title, properties, traits, trace_id)
FROM {{rows}}.analysis_events_raw
COMMENT 'Events for analysts, one row per message, without test messages or raw ids. person_id is NULL for an event without an owner, so count people with uniqExact(person_id). Filter by environment_id and event_time.';

ALTER TABLE {{rows}}.analysis_events {{comments of analysis_events_raw}};

-- Reading a property from safe_properties parses and writes all properties of an event. With the names as parameters, the
-- declaration is compared once per query, and only these properties are read. In a cluster, a time range in parameters is
-- applied on each shard.
CREATE VIEW IF NOT EXISTS properties_between DEFINER = views SQL SECURITY DEFINER AS
WITH (SELECT groupArrayArray(safe_properties) FROM environment_settings FINAL WHERE environment_id = {environment: String}) AS declared
SELECT
    * EXCEPT (anonymous_id, user_id, identity_type, from_id, from_type, to_id, to_type, device_id, user_agent,
        page_url, page_path, page_referrer, page_title, properties, traits, trace_id),
    propertyText(if(has(declared, {text: String}), properties, ''), {text: String}) AS text,
    propertyNumber(if(has(declared, {number: String}), properties, ''), {number: String}) AS number
FROM analysis_events_raw
WHERE environment_id = {environment: String}
    AND event_time >= {since: DateTime64(3, 'UTC')} AND event_time < {until: DateTime64(3, 'UTC')}
COMMENT 'properties_between(environment = …, since = …, until = …, text = …, number = …): the columns of analysis_events, for events from since until before until (text in UTC, or Unix timestamps), with the properties of the two given names in the columns text (empty when absent) and number (NULL when absent). A property that the project does not declare safe is absent.';

-- For developers who try out a client or check what a release sends. The view has the columns of analysis_events.
CREATE VIEW IF NOT EXISTS {{rows}}.analysis_tests DEFINER = views SQL SECURITY DEFINER AS
WITH event.identity_key = toFixedString('', 16) AS has_no_owner,
    (SELECT (groupArray(environment_id), groupArray(time_zone), groupArray(safe_properties)) FROM current_environment_settings) AS settings,
    transform(event.environment_id, settings.1, settings.2, 'UTC') AS time_zone,
    settings.3[indexOf(settings.1, event.environment_id)] AS declared
SELECT
    environment_id, type, event_name, event_time,
    toDateTime(event_time, 'UTC') AS event_second,
    toUInt64(toUnixTimestamp64Milli(event_time)) AS event_millisecond,
    toDate(event_time) AS event_day,
    if(time_zone = 'UTC', toDate(event_time), toDate(formatDateTime(event_time, '%F', time_zone))) AS local_day,
    received_at, message_id,
    person_key,
    if(has_no_owner, NULL, lower(hex(person_key))) AS person_id,
    if(has_no_owner, NULL, lower(hex(identity_key))) AS identity_id,
    session_id, surface, consent_level, library, library_version, locale, timezone, screen, screen_density, browser_language,
    replaceRegexpAll(page_path, '/[^/0-9@%]*[0-9@%][^/]*', '/:id') AS page_route,
    decodeURLFormComponent(extractURLParameter(page_url, 'utm_campaign')) AS campaign,
    domainWithoutWWW(page_referrer) AS referrer_domain,
    concat('{', arrayStringConcat(arrayMap(property -> concat(toJSONString(property.1), ':', property.2),
        arrayFilter(property -> has(declared, property.1), JSONExtractKeysAndValuesRaw(properties))), ','), '}') AS safe_properties,
    COLUMNS('^property_')
FROM {{rows}}.events_identified AS event
WHERE test
COMMENT 'Test messages, which all other analyst views exclude. One row per message, without raw ids. Filter by environment_id and event_time.';

ALTER TABLE {{rows}}.analysis_tests {{comments of analysis_events_raw}};
