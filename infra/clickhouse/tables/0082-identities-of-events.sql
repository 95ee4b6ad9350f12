-- What copies of a message share decides first, then which came first: as a merge does, so that what a copy says otherwise
-- changes nothing.
CREATE MATERIALIZED VIEW IF NOT EXISTS identities_of_events TO identities AS
SELECT
    environment_id, identity_key, test,
    min(event_time) AS first_seen_at,
    max(event_time) AS last_seen_at,
    argMinState((surface::String, page_url, page_referrer)::Tuple(surface String, page_url String, page_referrer String), (type != 'page', event_time, message_id, bitNot(version))) AS first_touch,
    argMaxIfState(traits, (event_time, message_id, version), type = 'identify') AS latest_traits
FROM events
WHERE identity_key != toFixedString('', 16) AND type != 'alias'
GROUP BY environment_id, identity_key, test
