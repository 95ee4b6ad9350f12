-- As for events: a block has rejections of up to three weeks.
ALTER TABLE message_rejections MODIFY SETTING non_replicated_deduplication_window = 300000
