-- Who is erased in an environment: a page of live messages shows nothing of them. Keyed hashes and times alone. In pages by
-- the key, and of what was written since.
CREATE OR REPLACE VIEW portal_fences DEFINER = views SQL SECURITY DEFINER AS
SELECT lower(hex(identity_key)) AS identity_id, cutoff_at, erasure_id, fenced_at
FROM erasure_fences
WHERE environment_id = {environment: String} AND identity_key > unhex({after: String})
    AND fenced_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
COMMENT 'portal_fences(environment = …, after = …, since = …): erased identities, several lines of one until a merge'
