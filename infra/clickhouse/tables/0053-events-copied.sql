-- Rows that stand twice now fold.
INSERT INTO events_by_time SELECT * FROM events
SETTINGS max_threads = 2, max_insert_threads = 2, max_partitions_per_insert_block = 10000, min_insert_block_size_bytes = 134217728
