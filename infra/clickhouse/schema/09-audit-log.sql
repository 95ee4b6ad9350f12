-- Derived from the access records (access.*.v1) and the entries of access.audit.v1. The sorting key identifies the change, so a
-- record that is written twice results in one row. Pages list a project's changes by time, in granules of 512 rows.
--
-- Entries are retained for two years, because audits are read long after the changes. Addresses are personal data of portal users
-- and are needed only during incident investigations, so they are deleted after 90 days. Expired parts are dropped as a whole. A
-- writer that catches up inserts blocks with entries from up to three years, so the deduplication window is as large as that of
-- events.
CREATE TABLE IF NOT EXISTS audit_log
(
    project_id LowCardinality(String) COMMENT 'Project; empty for changes to the whole instance',
    environment_id LowCardinality(String) COMMENT 'Environment; empty for changes to the whole project',
    happened_at DateTime64(3, 'UTC') COMMENT 'Time of the change according to the clock of the process that made the change',
    entry_id String COMMENT 'Id of the change, composed of kind, object, revision and request; a UUID for entries of access.audit.v1',
    kind LowCardinality(String) COMMENT 'Kind of the record: project, key, rate-limit-key, collection, account or signable-key; entry for entries of access.audit.v1',
    object String COMMENT 'Id of the changed object; never a secret or a player id',
    revision UInt64 COMMENT 'Revision of the record; for keys 1 when created and 2 when ended; 0 for entries of access.audit.v1',
    action LowCardinality(String) COMMENT 'Name of the action, for example project.change, key.create or session.create; new actions may be added',
    actor String COMMENT 'Account that made the change; empty when unknown',
    request_id String COMMENT 'Id of the request or command, shared by all of its changes',
    address String COMMENT 'IP address of the client; empty after 90 days and for record changes' TTL toDateTime(happened_at) + INTERVAL 90 DAY,
    detail String COMMENT 'New values as a JSON object, without hashes and secrets'
)
ENGINE = {{engine ReplacingMergeTree}}
PARTITION BY toYear(happened_at)
ORDER BY (project_id, happened_at, entry_id)
TTL toDateTime(happened_at) + INTERVAL 2 YEAR DELETE
SETTINGS index_granularity = 512, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 300000, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Access record changes and entries of access.audit.v1, one row each. Read with FINAL.';
