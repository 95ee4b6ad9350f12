-- Derived from the records of access (access.*.v1) and the entries of access.audit.v1. The sorting key identifies the change, so a record that is written twice is one row. Pages show a project by time, in granules of 512 rows.
--
-- Kept for two years, because an audit is read long after. Addresses are personal data of people who use the portal, and are
-- needed only while an incident is investigated: 90 days. Parts are dropped as a whole. A writer that catches up inserts
-- blocks with entries of up to three years, which is why the table remembers as many tokens as events.
CREATE TABLE IF NOT EXISTS audit_log
(
    project_id LowCardinality(String) COMMENT 'Project; empty for the whole instance',
    environment_id LowCardinality(String) COMMENT 'Environment; empty for the whole project',
    happened_at DateTime64(3, 'UTC') COMMENT 'Time of the change by the clock of the process that made it',
    entry_id String COMMENT 'Id of the change: kind, object, revision and request; of an entry of access.audit.v1 its UUID',
    kind LowCardinality(String) COMMENT 'Kind of the record: project, key, rate-limit-key, collection, account or signable-key; entry: an entry of access.audit.v1',
    object String COMMENT 'Id of the changed object; never a secret, never an id of a player',
    revision UInt64 COMMENT 'Revision of the record; of a key 1 when created and 2 when ended; 0 for an entry',
    action LowCardinality(String) COMMENT 'Action: project.change, key.create, key.end, account.disable, session.create and so on; more may be added',
    actor String COMMENT 'Account that made the change; empty when unknown',
    request_id String COMMENT 'Id of the request or command, the same in all of its changes',
    address String COMMENT 'Address of the client; empty after 90 days, and for changes of records' TTL toDateTime(happened_at) + INTERVAL 90 DAY,
    detail String COMMENT 'JSON object with the new values, without hashes and secrets'
)
ENGINE = {{engine ReplacingMergeTree}}
PARTITION BY toYear(happened_at)
ORDER BY (project_id, happened_at, entry_id)
TTL toDateTime(happened_at) + INTERVAL 2 YEAR DELETE
SETTINGS index_granularity = 512, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 300000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Changes of records of access and entries of access.audit.v1, one row each. Read with FINAL.';
