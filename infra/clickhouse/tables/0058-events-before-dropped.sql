-- The former table.
DROP TABLE IF EXISTS events_by_time SYNC
