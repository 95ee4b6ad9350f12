CREATE OR REPLACE VIEW analysis_rejections DEFINER = views SQL SECURITY DEFINER AS
SELECT environment_id, code, field, surface, library, library_version, received_at, trace_id
FROM message_rejections FINAL
COMMENT 'One row an error of a rejected message, 90 days; a sample: under load errors are left out.'
