-- Finds one message by its id, which is the fifth column of the key.
ALTER TABLE events_by_time ADD INDEX IF NOT EXISTS message_ids message_id TYPE bloom_filter(0.001) GRANULARITY 1
