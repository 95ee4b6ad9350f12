-- `identity_overrides` anew, with the time at which a row was stored, and in partitions by it: views ask for what was
-- stored since persons were read last, and must not read all of it for that.
CREATE TABLE IF NOT EXISTS identity_overrides_by_week
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    person_key FixedString(16) COMMENT 'Key of a member of the component it belongs to: the person',
    kind LowCardinality(String) COMMENT 'What the identity is: anonymous, an identity type, or untyped',
    linked_at DateTime64(3, 'UTC') COMMENT 'When the gateway accepted the message that linked it first; a later move keeps it',
    version UInt64 COMMENT 'Place of the decision: 8 bits topic generation, 48 bits link offset, 8 bits step; the greatest is true',
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When this row was stored, by the clock of ClickHouse; the epoch for rows from before it was noted',
    INDEX person_keys person_key TYPE bloom_filter(0.001) GRANULARITY 4
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toMonday(stored_at)
ORDER BY (environment_id, identity_key)
SETTINGS index_granularity = 512, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Person of every linked identity. Several versions of a row may stand: the greatest is true. Read it with FINAL.'
