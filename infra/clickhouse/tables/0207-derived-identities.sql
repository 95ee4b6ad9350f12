-- As identities_of_events since 0206.
CREATE OR REPLACE VIEW derived_identities SQL SECURITY INVOKER AS
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
COMMENT 'First and last seen, first touch and latest traits by the events from since to before until'
