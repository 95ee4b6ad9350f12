-- Finds the rows of one person, which stand under other names and days all over the sorting key, and by anonymous_key in
-- no key at all. One filter over four columns is one file a part; a filter is as large as its granule has keys, so from_key
-- and to_key, which are mostly zero, cost nothing. It never misses a row, since the engine makes it from the rows
-- themselves, and nothing in it has to be erased. user_key is left out: where there is one it is identity_key.
-- What it costs and what it saves, and what a table of keys would cost instead: infra/decisions/0027.
ALTER TABLE events ADD INDEX IF NOT EXISTS carried_keys (identity_key, anonymous_key, from_key, to_key) TYPE bloom_filter(0.001) GRANULARITY 1
