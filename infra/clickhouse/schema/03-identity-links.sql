-- Sorting key: the position of the link fact. A linker that crashes between deciding and publishing publishes the same decision
-- again, and a merge folds the two. carried_keys finds the decisions about one person, which are in the order of the log.
CREATE TABLE IF NOT EXISTS identity_links
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identities',
    link_generation UInt8 COMMENT 'Generation of the link topic: raised when its partitioning changes',
    link_partition UInt16 COMMENT 'Partition of audience.identity-links.v1 with the link fact',
    link_offset UInt64 COMMENT 'Offset of the link fact',
    step UInt8 COMMENT 'Step of the link fact: one fact may request more than one link',
    message_id UUID COMMENT 'Message that requested the link',
    link LowCardinality(String) COMMENT 'identify, alias, same_id: a typed id linked to the same id without type, or unlink: an operator split a off from b',
    a_key FixedString(16) COMMENT 'Keyed hash of one side',
    a_kind LowCardinality(String) COMMENT 'anonymous, an identity type, or untyped',
    b_key FixedString(16) COMMENT 'Keyed hash of the other side',
    b_kind LowCardinality(String) COMMENT 'anonymous, an identity type, or untyped',
    outcome LowCardinality(String) COMMENT 'linked, unchanged, refused or ambiguous; of an unlink unlinked, unchanged or refused',
    reason LowCardinality(String) COMMENT 'Why a link was refused; empty otherwise',
    person_key FixedString(16) COMMENT 'Person of both sides after the decision; zero bytes when refused',
    moved_count UInt16 COMMENT 'Number of identities whose person changed',
    event_time DateTime64(3, 'UTC') COMMENT 'Time of the message by the clock of the client',
    received_at DateTime64(3, 'UTC') COMMENT 'When the gateway accepted the message',
    trace_id String COMMENT 'Trace of the request with the message',
    kafka_partition UInt16 COMMENT 'Partition of audience.identity-decisions.v1 with the decision',
    kafka_offset UInt64 COMMENT 'Offset of the decision within its partition',
    INDEX carried_keys (a_key, b_key, person_key) TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (environment_id, link_generation, link_partition, link_offset, step)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Decisions about links. Read with FINAL where a decision that was published twice must count once.';
