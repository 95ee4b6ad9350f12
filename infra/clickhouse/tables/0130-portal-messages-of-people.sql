-- A list of messages as portal_messages has it, of those that name anybody of these: as owner, as the visitor before that, or
-- as a side of an alias. The filters over keys leave the granules that may hold one, so a person costs their own granules
-- and not the days of the span.
CREATE OR REPLACE VIEW portal_messages_of_people DEFINER = views SQL SECURITY DEFINER AS
SELECT
    message_id, type, event_name, event_time, received_at, surface, library, library_version, test, consent_level,
    anonymous_id, user_id, identity_type, lower(hex(identity_key)) AS identity_id, trace_id
FROM events
WHERE environment_id = {environment: String}
    AND event_time >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND event_time <= fromUnixTimestamp64Milli({until: Int64}, 'UTC')
    AND (event_time < fromUnixTimestamp64Milli({until: Int64}, 'UTC') OR message_id < toUUIDOrZero({before: String}))
    AND ({name: String} = '' OR event_name = {name: String})
    AND (identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        OR anonymous_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        OR from_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        OR to_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16)))
COMMENT 'portal_messages_of_people(environment = …, since = …, until = …, before = …, name = …, identities = […]): messages that name anybody of these, copies included'
