CREATE OR REPLACE VIEW persons DEFINER = views SQL SECURITY DEFINER AS
SELECT environment_id, person_key, person_id, identities, members, first_seen_at, last_seen_at,
    first_surface, first_route, first_referrer_domain, first_campaign
FROM persons_raw
COMMENT 'Everybody who has sent an event: over all identities of the person, when first and last seen, and by which way. Without tests.'
