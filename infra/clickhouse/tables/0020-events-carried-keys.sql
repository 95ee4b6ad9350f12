-- Finds the rows of one person, which stand under other names and days all over the sorting key, and by anonymous_key in
-- no key at all. A filter is as large as its granule has different keys, the largest of its columns: so from_key and
-- to_key, which are mostly zero, have one of their own, of a few bytes. A filter never misses a row, since the engine
-- makes it from the rows themselves, and nothing in it has to be erased. user_key is left out: where there is one it is
-- identity_key. What it costs and what it saves, and what a table of keys would cost instead: infra/decisions/0027.
ALTER TABLE events
    ADD INDEX IF NOT EXISTS carried_keys (identity_key, anonymous_key) TYPE bloom_filter(0.001) GRANULARITY 1,
    ADD INDEX IF NOT EXISTS alias_keys (from_key, to_key) TYPE bloom_filter(0.001) GRANULARITY 1
