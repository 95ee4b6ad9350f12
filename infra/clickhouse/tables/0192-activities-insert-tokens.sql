-- As for events: a block has versions of up to three months.
ALTER TABLE activities MODIFY SETTING non_replicated_deduplication_window = 300000
