-- Whoever misses a message has the trace of an answer. Found by the filter over traces.
CREATE OR REPLACE VIEW portal_rejections_of_trace DEFINER = views SQL SECURITY DEFINER AS
SELECT code, field, surface, library, library_version, received_at, trace_id
FROM message_rejections FINAL
WHERE environment_id = {environment: String} AND trace_id = {trace: String} AND trace_id != ''
COMMENT 'portal_rejections_of_trace(environment = …, trace = …): errors of one request; a sample'
