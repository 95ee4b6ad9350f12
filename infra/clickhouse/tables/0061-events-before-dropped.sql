-- The former table.
DROP TABLE IF EXISTS events_by_time SYNC SETTINGS max_table_size_to_drop = 0
