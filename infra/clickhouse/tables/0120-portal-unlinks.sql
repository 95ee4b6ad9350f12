-- On which side of which unlinks these identities stood.
CREATE OR REPLACE VIEW portal_unlinks DEFINER = views SQL SECURITY DEFINER AS
SELECT lower(hex(identity_key)) AS identity_id, link_generation, link_offset, side, unlinked_at
FROM identity_unlinks FINAL
WHERE environment_id = {environment: String}
    AND identity_key IN (SELECT toFixedString(unhex(arrayJoin({identities: Array(String)})), 16))
COMMENT 'portal_unlinks(environment = …, identities = […]): sides of unlinks'
