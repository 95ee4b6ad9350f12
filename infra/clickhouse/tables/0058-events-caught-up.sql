-- What the former table has and the copy may not: an insert may have ended between the table and its view, and one that
-- stands is not repeated. All that was written or merged since ten minutes before the copy; what stands twice folds.
INSERT INTO events SELECT * FROM events_by_time
WHERE _part IN
(
    SELECT name FROM system.parts
    WHERE database = currentDatabase() AND table = 'events_by_time' AND active
        AND modification_time >= (SELECT min(applied_at) - INTERVAL 10 MINUTE FROM applied_sql_files WHERE name = '0052-events-attached.sql')
)
SETTINGS max_threads = 2, max_insert_threads = 2, max_partitions_per_insert_block = 10000
