-- Events that stood before.
INSERT INTO identity_days SELECT environment_id, identity_key, toDate(event_time) AS day, event_name, test
FROM events WHERE identity_key != toFixedString('', 16) AND type != 'alias'
SETTINGS max_threads = 2, max_insert_threads = 1, max_partitions_per_insert_block = 10000
