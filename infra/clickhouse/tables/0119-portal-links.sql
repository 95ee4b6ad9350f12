-- What was asked for about these identities, and what became of it. Found by the filter over keys.
CREATE OR REPLACE VIEW portal_links DEFINER = views SQL SECURITY DEFINER AS
SELECT
    received_at, event_time, link, lower(hex(a_key)) AS a_id, a_kind, lower(hex(b_key)) AS b_id, b_kind, outcome, reason,
    moved_count, message_id, trace_id, link_generation, link_partition, link_offset, step
FROM identity_links
WHERE environment_id = {environment: String}
    AND (a_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
        OR b_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16)))
ORDER BY link_generation DESC, link_offset DESC, step DESC, link_partition DESC
LIMIT 1 BY link_generation, link_partition, link_offset, step
COMMENT 'portal_links(environment = …, identities = […]): decisions about these identities, the newest first'
