-- As events: finds the decisions about one person, which stand in the order of the log.
ALTER TABLE identity_links ADD INDEX IF NOT EXISTS carried_keys (a_key, b_key, person_key) TYPE bloom_filter(0.001) GRANULARITY 1
