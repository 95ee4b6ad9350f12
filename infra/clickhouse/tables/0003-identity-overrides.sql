-- Which person an identity belongs to now. An identity without a row is a person of its own. Small granules: a look-up
-- of one identity reads 512 rows instead of 8,192.
CREATE TABLE IF NOT EXISTS identity_overrides
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    person_key FixedString(16) COMMENT 'Smallest identity key of the component it belongs to: the person',
    kind LowCardinality(String) COMMENT 'What the identity is: anonymous, an identity type, or untyped',
    linked_at DateTime64(3, 'UTC') COMMENT 'When the gateway accepted the message that linked it first; a later move keeps it',
    version UInt64 COMMENT 'Place of the decision: 8 bits topic generation, 48 bits link offset, 8 bits step; the greatest is true'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (environment_id, identity_key)
SETTINGS index_granularity = 512, non_replicated_deduplication_window = 100000
COMMENT 'Person of every linked identity. Several versions of a row may stand until a merge: the greatest is true.'
