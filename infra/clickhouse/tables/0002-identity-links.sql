-- One row a decision: who was linked, when, by which message, or why not. A linker that dies between deciding and
-- publishing publishes the same decision again; its place among the link facts is the key, so it stays one row.
CREATE TABLE IF NOT EXISTS identity_links
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identities',
    link_generation UInt8 COMMENT 'Generation of the link topic: raised when its partitioning changes',
    link_partition UInt16 COMMENT 'Partition of audience.identity-links.v1 that held the link fact',
    link_offset UInt64 COMMENT 'Offset of the link fact',
    step UInt8 COMMENT 'Which step of the link fact: one fact may ask for more than one link',
    message_id UUID COMMENT 'Message that asked for the link',
    link LowCardinality(String) COMMENT 'identify, alias, or same_id: a typed id linked to the same id without type',
    a_key FixedString(16) COMMENT 'Keyed hash of one side',
    a_kind LowCardinality(String) COMMENT 'anonymous, an identity type, or untyped',
    b_key FixedString(16) COMMENT 'Keyed hash of the other side',
    b_kind LowCardinality(String) COMMENT 'anonymous, an identity type, or untyped',
    outcome LowCardinality(String) COMMENT 'linked, unchanged, refused or ambiguous',
    reason LowCardinality(String) COMMENT 'Why a link was refused; empty otherwise',
    person_key FixedString(16) COMMENT 'Person both belong to after the decision; zero bytes when refused',
    moved_count UInt16 COMMENT 'Identities whose person changed by it',
    event_time DateTime64(3, 'UTC') COMMENT 'When the message happened, by the clock of the client',
    received_at DateTime64(3, 'UTC') COMMENT 'When the gateway accepted the message',
    trace_id String COMMENT 'Trace of the request that brought the message',
    kafka_partition UInt16 COMMENT 'Partition of audience.identity-decisions.v1 the decision stood in',
    kafka_offset UInt64 COMMENT 'Offset of the decision within its partition'
)
ENGINE = ReplacingMergeTree
ORDER BY (environment_id, link_generation, link_partition, link_offset, step)
SETTINGS non_replicated_deduplication_window = 100000
COMMENT 'History of link decisions. Add FINAL where a decision published twice must count once.'
