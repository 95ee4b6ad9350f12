-- A table remembers tokens of inserts for all of its partitions together, and a block takes one for each partition that it
-- has rows of: up to three months of event times. Ten minutes of blocks must fit (block-settings.ts of @playline/runtime).
ALTER TABLE events MODIFY SETTING non_replicated_deduplication_window = 300000
