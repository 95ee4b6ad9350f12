-- Events that stood before.
INSERT INTO identities SELECT * FROM derived_identities(since = '1900-01-01 00:00:00', until = '2299-12-31 00:00:00')
SETTINGS max_threads = 2, max_insert_threads = 1, max_bytes_before_external_group_by = 500000000
