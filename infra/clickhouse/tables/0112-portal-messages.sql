-- A list of messages, without what is long of them. It reads the days of the span, of the name where one is given: whoever
-- asks for the newest begins with a short span. Copies of a message stand as they were written; the reader folds them,
-- since it has but a page of them.
-- Texts that are empty say nothing. Times are epoch milliseconds; `until` is not part of the span, but for messages behind
-- `before`, which is where the page in front ended.
CREATE OR REPLACE VIEW portal_messages DEFINER = views SQL SECURITY DEFINER AS
SELECT
    message_id, type, event_name, event_time, received_at, surface, library, library_version, test, consent_level,
    anonymous_id, user_id, identity_type, lower(hex(identity_key)) AS identity_id, trace_id
FROM events
WHERE environment_id = {environment: String}
    AND event_time >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND event_time <= fromUnixTimestamp64Milli({until: Int64}, 'UTC')
    AND (event_time < fromUnixTimestamp64Milli({until: Int64}, 'UTC') OR message_id < toUUIDOrZero({before: String}))
    AND ({type: String} = '' OR type = {type: String})
    AND ({name: String} = '' OR event_name = {name: String})
    AND ({surface: String} = '' OR surface = {surface: String})
    AND ({test: String} = '' OR test = ({test: String} = 'true'))
    AND ({identity: String} = '' OR identity_key = toFixedString(unhex({identity: String}), 16))
COMMENT 'portal_messages(environment = …, since = …, until = …, before = …, type = …, name = …, surface = …, test = …, identity = …): messages as they were written, copies included'
