-- Persons as of the last load, in memory. The name is the first half of the identity's key, which is a hash and holds
-- its environment: so it is unique enough to look by, and the whole key beside it is compared. It holds the identities of
-- every environment and no row policy reaches into it: only the account of the views may read it.
CREATE DICTIONARY IF NOT EXISTS identity_persons (name UInt64, identity_key UUID, person_key UUID, version UInt64)
PRIMARY KEY name
SOURCE(CLICKHOUSE(NAME persons TABLE 'settled_persons' INVALIDATE_QUERY 'SELECT max(stored_at), count() FROM identity_overrides'))
LAYOUT(HASHED_ARRAY())
LIFETIME(MIN 240 MAX 360)
COMMENT 'Person of every linked identity at the time of the load; what came since stands in recent_overrides'
