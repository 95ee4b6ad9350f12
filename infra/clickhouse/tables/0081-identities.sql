-- What is known of each identity by its events alone. Minima, maxima and the like only: a copy that comes again changes
-- nothing. Keyed by identity and never by person, so an unlink costs nothing.
CREATE TABLE IF NOT EXISTS identities
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the owner of the events',
    test Bool COMMENT 'Sent as a test',
    first_seen_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) COMMENT 'Time of its first event, by the clock of the client',
    last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Time of its last event',
    first_touch AggregateFunction(argMin, Tuple(surface String, page_url String, page_referrer String), Tuple(Bool, DateTime64(3, 'UTC'), UUID, UInt64)) COMMENT 'Surface, page and referrer of its first page event, or of its first event when there is none',
    latest_traits AggregateFunction(argMaxIf, String, Tuple(DateTime64(3, 'UTC'), UUID, UInt64), UInt8) COMMENT 'Traits of its last identify'
)
ENGINE = AggregatingMergeTree
ORDER BY (environment_id, identity_key, test)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'First and last seen, first touch and latest traits of each identity, kept in step with events; made anew by: npm run derive. Read persons.'
