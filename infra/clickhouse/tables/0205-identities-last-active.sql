-- Clients with a clock ahead of ours send events of tomorrow. last_seen_at stays the time that they claim, because it does
-- not depend on which copy of a message is kept; persons show last_active_at.
ALTER TABLE identities
    ADD COLUMN IF NOT EXISTS last_active_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) DEFAULT last_seen_at
    COMMENT 'Time of its last event, at most a minute after the gateway received it'
