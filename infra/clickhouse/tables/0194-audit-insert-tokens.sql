-- As for events: a block of a writer that catches up has entries of up to three years.
ALTER TABLE audit_log MODIFY SETTING non_replicated_deduplication_window = 300000
