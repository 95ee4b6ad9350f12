-- Who did what: derived from the records of access (access.*.v1), which carry who made them, and the entries of
-- access.audit.v1. The key holds which change a row is about, so a record that is written twice, or that stands in the log
-- twice, is one row. Read with FINAL, by project and time.
--
-- Two years: an audit is asked for long after. Addresses are personal data of people who work with the portal and are of
-- use while an incident is looked into: ninety days. Partitions of a month are dropped whole.
CREATE TABLE IF NOT EXISTS audit_log
(
    project_id LowCardinality(String) COMMENT 'Project it concerns; empty for what concerns the whole instance',
    environment_id LowCardinality(String) COMMENT 'Environment it concerns; empty for the whole project',
    happened_at DateTime64(3, 'UTC') COMMENT 'When it was done, by the clock of who did it',
    entry_id String COMMENT 'Which change: kind, object, revision and request; of an entry of the audit itself its UUID',
    kind LowCardinality(String) COMMENT 'Record that it follows from: project, key, rate-limit-key, collection, account or signable-key; entry for an entry of the audit itself',
    object String COMMENT 'Id of what it was done to; never a secret, never an id of a player',
    revision UInt64 COMMENT 'Revision of the record; of a key 1 when it was made and 2 when it ended; 0 for an entry',
    action LowCardinality(String) COMMENT 'What was done: project.change, key.create, key.end, account.disable, session.create and so on; the set is open',
    actor String COMMENT 'Account that did it; empty where a release before did not say',
    request_id String COMMENT 'Request or command that did it: one for all that it changed',
    address String COMMENT 'Where the request came from; empty after 90 days, and for what follows from a record' TTL toDateTime(happened_at) + INTERVAL 90 DAY,
    detail String COMMENT 'JSON of an object: what it was changed to, without hashes and secrets'
)
ENGINE = ReplacingMergeTree
PARTITION BY toYear(happened_at)
ORDER BY (project_id, happened_at, entry_id)
TTL toDateTime(happened_at) + INTERVAL 2 YEAR DELETE
SETTINGS index_granularity = 512, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'One row a change of what belongs to access, and one an entry of the audit. Read with FINAL.'
