-- Rows from before get the filter in the background: one column is read, and one file is written beside each part. Until a
-- part has it, a search for a token reads its rows. A clickhouse-local would wait for the end, and a start with it.
ALTER TABLE activity_feeds MATERIALIZE INDEX token_ids SETTINGS mutations_sync = 0
