-- Finds the activities of one token, which are anywhere in the feed of their contract: a filter over the token ids in each 128
-- rows. Queries that name no token do not read it. The expression is that of the view portal_activities: what follows each name
-- of the member, up to the next quote. A regular expression would take five times as long, with each insert and merge.
ALTER TABLE activity_feeds
    ADD INDEX IF NOT EXISTS token_ids arrayMap(part -> substringIndex(part, '"', 1), arraySlice(splitByString('"token_id":"', members), 2)) TYPE bloom_filter(0.001) GRANULARITY 1
