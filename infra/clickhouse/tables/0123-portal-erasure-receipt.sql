-- One receipt, whole, as it is given to whoever asked for the erasure. Found by its id.
CREATE OR REPLACE VIEW portal_erasure_receipt DEFINER = views SQL SECURITY DEFINER AS
SELECT
    erasure_id, environment_id, lower(hex(closure_hash)) AS closure_digest, closure_count, cutoff_at, accepted_at, fenced_at,
    visibly_erased_at, physically_erased_at, log_expires_at, log_expired_at, deleted, verified, log_ends, trace_id
FROM erasure_receipts FINAL
WHERE environment_id = {environment: String} AND erasure_id = toUUIDOrZero({erasure: String})
COMMENT 'portal_erasure_receipt(environment = …, erasure = …): no row while there is no receipt'
