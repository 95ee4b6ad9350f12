-- An identity without a row is a person of its own. Granules of 512 rows: a query for one identity reads 512 rows instead of
-- 8,192. Partitions by week of storage: views read only what was stored since the dictionary identity_persons was loaded.
-- person_keys finds the identities of a person.
CREATE TABLE IF NOT EXISTS identity_overrides
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    person_key FixedString(16) COMMENT 'Person: key of one of its identities',
    kind LowCardinality(String) COMMENT 'anonymous, an identity type, or untyped',
    linked_at DateTime64(3, 'UTC') COMMENT 'When the gateway accepted the message that first linked the identity; a later move keeps it',
    version UInt64 COMMENT 'Position of the decision: 8 bits topic generation, 48 bits link offset, 8 bits step; the greatest applies',
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When this row was stored, by the clock of ClickHouse',
    INDEX person_keys person_key TYPE bloom_filter(0.001) GRANULARITY 4
)
ENGINE = {{engine ReplacingMergeTree(version)}}
PARTITION BY toMonday(stored_at)
ORDER BY (environment_id, identity_key)
SETTINGS index_granularity = 512, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Person of every linked identity. Of several versions the greatest applies. Read with FINAL.';
