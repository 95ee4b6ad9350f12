-- Whoever misses a message has the trace of an answer. Found by the filter over traces, which FINAL would not ask; so few
-- rows that their copies are folded here.
CREATE OR REPLACE VIEW portal_rejections_of_trace DEFINER = views SQL SECURITY DEFINER AS
SELECT code, field, surface, library, library_version, received_at, trace_id
FROM message_rejections
WHERE environment_id = {environment: String} AND trace_id = {trace: String} AND trace_id != ''
LIMIT 1 BY code, field, received_at, kafka_partition, kafka_offset
COMMENT 'portal_rejections_of_trace(environment = …, trace = …): errors of one request; a sample'
