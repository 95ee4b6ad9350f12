-- Sorting key: the position of the link fact. A linker that crashes between deciding and publishing publishes a decision
-- twice; a merge removes the duplicate. Rows are in log order, so the index carried_keys finds a person's decisions.
CREATE TABLE IF NOT EXISTS identity_links
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identities',
    link_generation UInt8 COMMENT 'Generation of the link topic, incremented when its partitioning changes',
    link_partition UInt16 COMMENT 'Partition of audience.identity-links.v1 that contains the link fact',
    link_offset UInt64 COMMENT 'Offset of the link fact',
    step UInt8 COMMENT 'Step within the link fact, which can request several links',
    message_id UUID COMMENT 'Id of the message that requested the link',
    link LowCardinality(String) COMMENT 'Type of the link: identify, alias, same_id (a typed id and the same id without a type) or unlink (an operator separated a from b)',
    a_key FixedString(16) COMMENT 'Keyed hash of the first identity',
    a_kind LowCardinality(String) COMMENT 'Kind of the first identity: anonymous, an identity type, or untyped',
    b_key FixedString(16) COMMENT 'Keyed hash of the second identity',
    b_kind LowCardinality(String) COMMENT 'Kind of the second identity: anonymous, an identity type, or untyped',
    outcome LowCardinality(String) COMMENT 'Outcome of the decision: linked, unchanged, refused or ambiguous; for an unlink unlinked, unchanged or refused',
    reason LowCardinality(String) COMMENT 'Reason for a refusal; empty otherwise',
    person_key FixedString(16) COMMENT 'Person of both identities after the decision; zero bytes when refused',
    moved_count UInt16 COMMENT 'Number of identities whose person changed',
    event_time DateTime64(3, 'UTC') COMMENT 'Time of the message according to the client clock',
    received_at DateTime64(3, 'UTC') COMMENT 'Time when the gateway accepted the message',
    trace_id String COMMENT 'Trace id of the request that contained the message',
    kafka_partition UInt16 COMMENT 'Partition of audience.identity-decisions.v1 that contains the decision',
    kafka_offset UInt64 COMMENT 'Offset of the decision in its partition',
    INDEX carried_keys (a_key, b_key, person_key) TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (environment_id, link_generation, link_partition, link_offset, step)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Link decisions. Read with FINAL so that a decision published twice is counted once.';
