-- One row per environment and message id at any moment, also when a copy sent again had changed: the copy received
-- first. FINAL folds copies with an equal key; the join drops copies that stand under another key (another name, day
-- or owner). `changed` holds only the few ids that have several versions, so an outer filter on environment and time
-- still prunes what is read of the events, and of the second read only three narrow columns of the environment remain.
-- Measured on 2 million rows, 1.2 million of them in the environment, 2 cores: see infra/clickhouse/README.md.
CREATE OR REPLACE VIEW events_exact SQL SECURITY INVOKER AS
SELECT event.*
FROM events AS event FINAL
LEFT JOIN
(
    SELECT environment_id, message_id, max(version) AS first
    FROM events
    GROUP BY environment_id, message_id
    HAVING min(version) != max(version)
) AS changed ON event.environment_id = changed.environment_id AND event.message_id = changed.message_id
WHERE event.version >= ifNull(changed.first, 0)
SETTINGS do_not_merge_across_partitions_select_final = 1
COMMENT 'One row per environment and message id: the copy received first. Filter by environment_id, and by event_time where you can.'
