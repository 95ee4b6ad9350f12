-- Only minima, maxima and the like, so a copy of a message changes nothing. Keyed by identity and not by person, so an unlink
-- changes no row. last_seen_at is the time that a client claims, which may be tomorrow and does not depend on which copy of a
-- message is kept; persons show last_active_at.
CREATE TABLE IF NOT EXISTS identities
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the owner of the events',
    test Bool COMMENT 'Sent as a test',
    first_seen_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) COMMENT 'Time of its first event, by the clock of the client',
    last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Time of its last event',
    first_touch AggregateFunction(argMin, Tuple(surface String, page_url String, page_referrer String), Tuple(Bool, DateTime64(3, 'UTC'), UUID, UInt64)) COMMENT 'Surface, page and referrer of its first page event, or of its first event when there is none',
    latest_traits AggregateFunction(argMaxIf, String, Tuple(DateTime64(3, 'UTC'), UUID, UInt64), UInt8) COMMENT 'Traits of its last identify',
    last_active_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) DEFAULT last_seen_at COMMENT 'Time of its last event; an event counts at most a minute after the gateway received it'
)
ENGINE = {{engine AggregatingMergeTree}}
ORDER BY (environment_id, identity_key, test)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'First and last seen, first touch and latest traits of each identity, derived from events; npm run derive corrects it. Read persons.';

-- What copies of a message share decides first, and then which one was received first, as in a merge: a copy with other values
-- changes nothing. An identify without traits changes no traits. last_active_at allows a minute: more than clocks of servers
-- differ, and less than a pause between two sessions.
CREATE MATERIALIZED VIEW IF NOT EXISTS identities_of_events TO identities AS
SELECT
    environment_id, identity_key, test,
    min(event_time) AS first_seen_at,
    max(event_time) AS last_seen_at,
    argMinState((surface::String, page_url, page_referrer)::Tuple(surface String, page_url String, page_referrer String), (type != 'page', event_time, message_id, bitNot(version))) AS first_touch,
    argMaxIfState(traits, (event_time, message_id, version), type = 'identify' AND traits != '') AS latest_traits,
    max(least(event_time, received_at + INTERVAL 1 MINUTE)) AS last_active_at
FROM events
WHERE identity_key != toFixedString('', 16) AND type != 'alias'
GROUP BY environment_id, identity_key, test;

ALTER TABLE identities_of_events {{comments of identities}};

-- What identities must contain for the events of a span. The states of several spans can be merged.
CREATE VIEW IF NOT EXISTS derived_identities SQL SECURITY INVOKER AS
SELECT
    environment_id, identity_key, test,
    min(event_time) AS first_seen_at,
    max(event_time) AS last_seen_at,
    argMinState((surface::String, page_url, page_referrer)::Tuple(surface String, page_url String, page_referrer String), (type != 'page', event_time, message_id, bitNot(version))) AS first_touch,
    argMaxIfState(traits, (event_time, message_id, version), type = 'identify' AND traits != '') AS latest_traits,
    max(least(event_time, received_at + INTERVAL 1 MINUTE)) AS last_active_at
FROM events
WHERE identity_key != toFixedString('', 16) AND type != 'alias' AND event_time >= {since: DateTime64(3, 'UTC')} AND event_time < {until: DateTime64(3, 'UTC')}
GROUP BY environment_id, identity_key, test
COMMENT 'derived_identities(since = …, until = …): what identities has, by the events of a span';
