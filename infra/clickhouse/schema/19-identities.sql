-- The table contains minima and maxima, which do not change when a copy of a message is added, except for last_active_at: a copy
-- received later of a message from a clock that is ahead raises it. It is keyed by identity rather than person, so an unlink
-- changes no row. last_seen_at is the time reported by the client, which may be in the future and does not depend on which copy
-- of a message remains; the view persons shows last_active_at.
-- user_hash finds an identity by its user id: the index reads few of the rows, which are few compared with events.
CREATE TABLE IF NOT EXISTS identities
(
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the owner of the events',
    test Bool COMMENT 'Flag for test messages',
    first_seen_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) COMMENT 'Time of the first event, capped at one minute after the gateway received the event',
    last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Time of the last event of the identity, according to the client clock',
    first_touch SimpleAggregateFunction(max, String) COMMENT 'Surface, page and referrer of the first page event, or of the first event if there is no page event, separated by bytes that occur in no text (FF), after 17 bytes by which this event has the greatest value',
    latest_traits SimpleAggregateFunction(max, String) COMMENT 'Traits of the last identify message that has traits, after 32 bytes by which this message has the greatest value',
    last_active_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) DEFAULT last_seen_at COMMENT 'Time of the last event, capped at one minute after the gateway received the event',
    user_hash SimpleAggregateFunction(max, FixedString(16)) COMMENT 'Hash of the trimmed user_id without a key, to find the identity; zero bytes if the identity is not a user',
    INDEX user_hashes user_hash TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {{engine AggregatingMergeTree}}
ORDER BY (environment_id, identity_key, test)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'First and last event, first touch and latest traits per identity, derived from events and corrected by npm run derive. Read persons instead.';

-- Of several events at the same time, the one that was received first is the first touch. The latest traits at the same time
-- depend on the message id, which copies share, because the order of receipt depends on copies. The order precedes the text,
-- most significant byte first, so that the greatest text applies: inserting and merging states of argMin and argMax costs three
-- times as much. An identify message without traits changes no traits. last_active_at allows one minute: more than server
-- clocks differ, and less than a pause between two sessions.
CREATE MATERIALIZED VIEW IF NOT EXISTS identities_of_events TO identities AS
SELECT
    environment_id, identity_key, test,
    min(least(event_time, received_at + INTERVAL 1 MINUTE)) AS first_seen_at,
    max(event_time) AS last_seen_at,
    max(concat(
        char(type = 'page'), reinterpretAsFixedString(byteSwap(bitNot(toUnixTimestamp64Milli(event_time)))), reinterpretAsFixedString(byteSwap(version)),
        surface, char(255), page_url, char(255), page_referrer)) AS first_touch,
    maxIf(concat(
        reinterpretAsFixedString(byteSwap(toUnixTimestamp64Milli(event_time))), reinterpretAsFixedString(byteSwap(reinterpretAsUInt128(message_id))),
        reinterpretAsFixedString(byteSwap(version)), traits), type = 'identify' AND traits != '') AS latest_traits,
    max(least(event_time, received_at + INTERVAL 1 MINUTE)) AS last_active_at,
    maxIf(sipHash128(trimBoth(user_id, ' \t\r\n')), user_key != toFixedString('', 16)) AS user_hash
FROM events
WHERE identity_key != toFixedString('', 16) AND type != 'alias'
GROUP BY environment_id, identity_key, test;

ALTER TABLE identities_of_events {{comments of identities}};

-- The expected rows of identities for a time range. The states of several time ranges can be merged.
CREATE VIEW IF NOT EXISTS derived_identities SQL SECURITY INVOKER AS
{{query of identities_of_events between since and until}}
COMMENT 'derived_identities(since = …, until = …): expected rows of identities for the events in a time range';
