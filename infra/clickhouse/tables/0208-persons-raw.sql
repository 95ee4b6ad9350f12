-- Last seen is last_active_at, which no clock of a client sets to tomorrow.
CREATE OR REPLACE VIEW persons_raw DEFINER = views SQL SECURITY DEFINER AS
SELECT
    environment_id, person_key, lower(hex(person_key)) AS person_id,
    uniqExact(identity_key) AS identities,
    arraySort(groupUniqArray(lower(hex(identity_key)))) AS members,
    least(min(identity_first_seen_at), last_seen_at) AS first_seen_at,
    max(identity_last_active_at) AS last_seen_at,
    argMinMerge(first_touch) AS touch,
    touch.surface AS first_surface,
    replaceRegexpAll(path(touch.page_url), '/[^/]*[0-9@%][^/]*', '/:id') AS first_route,
    domainWithoutWWW(touch.page_referrer) AS first_referrer_domain,
    decodeURLFormComponent(extractURLParameter(touch.page_url, 'utm_campaign')) AS first_campaign,
    touch.page_url AS first_page_url,
    touch.page_referrer AS first_page_referrer,
    argMaxIfMerge(latest_traits) AS traits
FROM
(
    WITH dictGetOrDefault('identity_persons', ('identity_key', 'person_key'), reinterpretAsUInt64(identity.identity_key),
        (toUUID('00000000-0000-0000-0000-000000000000'), toUUID('00000000-0000-0000-0000-000000000000'))) AS settled
    SELECT
        identity.environment_id AS environment_id, identity.identity_key AS identity_key,
        multiIf(ifNull(recent.person_key, toFixedString('', 16)) != toFixedString('', 16), assumeNotNull(recent.person_key),
            reinterpretAsUUID(identity.identity_key) = settled.1, reinterpretAsFixedString(settled.2),
            identity.identity_key) AS person_key,
        identity.first_seen_at AS identity_first_seen_at, identity.last_active_at AS identity_last_active_at,
        identity.first_touch AS first_touch, identity.latest_traits AS latest_traits
    FROM identities AS identity
    LEFT ANY JOIN recent_overrides AS recent ON identity.identity_key = recent.identity_key
    WHERE NOT identity.test
)
GROUP BY environment_id, person_key
COMMENT 'Everybody who has sent an event: over all identities of the person, with the page first seen and the latest traits. An event counts as seen at most a minute after it was received, whatever time its client gave. Without tests.'
