-- With the number of rows and values that an erasure deleted: 0 shows a request for an identity that was never seen.
CREATE OR REPLACE VIEW portal_erasures DEFINER = views SQL SECURITY DEFINER AS
SELECT
    request.erasure_id AS erasure_id, request.requested_at AS requested_at, request.cutoff_at AS cutoff_at,
    length(request.subject_keys) AS subjects, request.trace_id AS trace_id,
    receipt.version != 0 AS has_receipt, receipt.closure_count AS identities,
    arraySum(mapValues(receipt.deleted)) AS deleted,
    receipt.fenced_at AS fenced_at, receipt.visibly_erased_at AS visibly_erased_at,
    receipt.physically_erased_at AS physically_erased_at, receipt.log_expires_at AS log_expires_at, receipt.log_expired_at AS log_expired_at
FROM (SELECT * FROM erasure_requests FINAL WHERE environment_id = {environment: String}) AS request
LEFT ANY JOIN (SELECT *, version FROM erasure_receipts FINAL WHERE environment_id = {environment: String}) AS receipt
    ON request.erasure_id = receipt.erasure_id
COMMENT 'portal_erasures(environment = …): requests, with the times of their receipts; without one times are the epoch'
