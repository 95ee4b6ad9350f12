-- As before (0132), and a receipt closes the erasure of its own environment alone, whichever others are asked for with it.
CREATE OR REPLACE VIEW portal_open_erasures DEFINER = views SQL SECURITY DEFINER AS
SELECT
    environment_id, count() AS erasures, countIf(is_open) AS open_erasures, minIf(requested_at, is_open) AS oldest_at,
    argMinIf(erasure_id, requested_at, is_open) AS oldest_id
FROM
(
    SELECT
        environment_id, erasure_id, requested_at,
        (environment_id, erasure_id) NOT IN (
            SELECT environment_id, erasure_id FROM erasure_receipts WHERE environment_id IN ({environments: Array(String)})) AS is_open
    FROM erasure_requests FINAL
    WHERE environment_id IN ({environments: Array(String)})
)
GROUP BY environment_id
COMMENT 'portal_open_erasures(environments = […]): erasures that were asked for and have no receipt yet; without one the oldest is of the epoch'
