INSERT INTO identity_overrides
SELECT environment_id, identity_key, person_key, kind, linked_at, version, now64(3) AS stored_at
FROM identity_overrides_by_week
WHERE _part IN
(
    SELECT name FROM system.parts
    WHERE database = currentDatabase() AND table = 'identity_overrides_by_week' AND active
        AND modification_time >= (SELECT min(applied_at) - INTERVAL 10 MINUTE FROM applied_sql_files WHERE name = '0065-overrides-attached.sql')
)
