-- An identify without traits changes none. Times as in 0205; a minute is more than clocks of servers differ, and less than a
-- pause between two sessions.
ALTER TABLE identities_of_events MODIFY QUERY
SELECT
    environment_id, identity_key, test,
    min(event_time) AS first_seen_at,
    max(event_time) AS last_seen_at,
    argMinState((surface::String, page_url, page_referrer)::Tuple(surface String, page_url String, page_referrer String), (type != 'page', event_time, message_id, bitNot(version))) AS first_touch,
    argMaxIfState(traits, (event_time, message_id, version), type = 'identify' AND traits != '') AS latest_traits,
    max(least(event_time, received_at + INTERVAL 1 MINUTE)) AS last_active_at
FROM events
WHERE identity_key != toFixedString('', 16) AND type != 'alias'
GROUP BY environment_id, identity_key, test
