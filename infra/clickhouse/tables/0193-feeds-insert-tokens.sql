-- As for events: a block has versions of up to two years, and what they supersede.
ALTER TABLE activity_feeds MODIFY SETTING non_replicated_deduplication_window = 300000
