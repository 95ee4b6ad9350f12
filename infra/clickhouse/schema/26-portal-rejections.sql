-- Causes of rejections: code, field and client. Reads the environment's rejections for all weeks in the time range. `trend` has
-- the numbers of the steps that contain errors, counted from `since`, and the errors in each of them.
CREATE VIEW IF NOT EXISTS portal_rejections DEFINER = views SQL SECURITY DEFINER AS
SELECT code, field, library, library_version, count() AS errors, uniq(trace_id) AS requests, groupUniqArray(surface) AS surfaces,
    min(received_at) AS first_at, max(received_at) AS last_at, arrayMap(each -> each.2, groupArraySorted(3)((-toUnixTimestamp64Milli(received_at), trace_id))) AS trace_ids,
    sumMap([toUInt32(intDiv(toUnixTimestamp64Milli(received_at) - {since: Int64}, 1000 * {step: UInt32}))], [1]) AS trend
FROM message_rejections FINAL
WHERE environment_id = {environment: String}
    AND received_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND received_at < fromUnixTimestamp64Milli({until: Int64}, 'UTC')
    AND ({code: String} = '' OR code = {code: String})
    AND ({field: String} = '' OR field = {field: String})
GROUP BY code, field, library, library_version
COMMENT 'portal_rejections(environment = …, since = …, until = …, step = …, code = …, field = …): errors by code, field and client library, with their number per step of so many seconds, from a sample';

-- To find a missing message, a developer takes the trace id from the response. The bloom filter on trace ids finds the rows;
-- FINAL would not use that filter. The result is small enough to be deduplicated here.
CREATE VIEW IF NOT EXISTS portal_rejections_of_trace DEFINER = views SQL SECURITY DEFINER AS
SELECT code, field, surface, library, library_version, received_at, trace_id
FROM message_rejections
WHERE environment_id = {environment: String} AND trace_id = {trace: String} AND trace_id != ''
LIMIT 1 BY code, field, received_at, kafka_partition, kafka_offset
COMMENT 'portal_rejections_of_trace(environment = …, trace = …): errors in one request, from a sample';
