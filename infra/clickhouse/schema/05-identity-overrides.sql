-- An identity without a row is its own person. With granules of 512 rows, a query for one identity reads 512 rows instead of
-- 8,192. The table is partitioned by the week of stored_at, because views read only rows stored after the last load of the
-- dictionary identity_persons. person_keys finds a person's identities.
CREATE TABLE IF NOT EXISTS identity_overrides
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    person_key FixedString(16) COMMENT 'Person of the identity: the key of one identity of the person',
    kind LowCardinality(String) COMMENT 'Kind of the identity: anonymous, an identity type, or untyped',
    linked_at DateTime64(3, 'UTC') COMMENT 'Time when the gateway accepted the message that first linked the identity, unchanged by later moves',
    version UInt64 COMMENT 'Position of the decision: 8 bits of topic generation, 48 bits of link offset, 8 bits of step; the row with the greatest version applies',
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time when the row was stored, according to the ClickHouse clock',
    INDEX person_keys person_key TYPE bloom_filter(0.001) GRANULARITY 4
)
ENGINE = {{engine ReplacingMergeTree(version)}}
PARTITION BY toMonday(stored_at)
ORDER BY (environment_id, identity_key)
SETTINGS index_granularity = 512, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Person of each linked identity. The row with the greatest version applies. Read with FINAL.';
