-- Reads all requests of the environment: erasures are requested one by one, so there are few. 0 deleted rows and values in a
-- receipt means that the identity was unknown. Until the receipt exists, the numbers are those that the eraser has stored so far.
CREATE VIEW IF NOT EXISTS portal_erasures DEFINER = views SQL SECURITY DEFINER AS
SELECT
    request.erasure_id AS erasure_id, request.requested_at AS requested_at, request.cutoff_at AS cutoff_at,
    length(request.subject_keys) AS subjects, request.trace_id AS trace_id,
    receipt.version != 0 AS has_receipt, if(has_receipt, receipt.closure_count, length(progress.found_keys)) AS identities,
    arraySum(mapValues(if(has_receipt, receipt.deleted, progress.found))) AS deleted,
    if(has_receipt, receipt.fenced_at, fence.first_fenced_at) AS fenced_at, receipt.visibly_erased_at AS visibly_erased_at,
    receipt.physically_erased_at AS physically_erased_at, receipt.log_expires_at AS log_expires_at, receipt.log_expired_at AS log_expired_at
FROM (SELECT * FROM erasure_requests FINAL WHERE environment_id = {environment: String}) AS request
LEFT ANY JOIN (SELECT *, version FROM erasure_receipts FINAL WHERE environment_id = {environment: String}) AS receipt
    ON request.erasure_id = receipt.erasure_id
LEFT ANY JOIN
(
    SELECT erasure_id, argMax(closure_keys, noted_at) AS found_keys, argMax(deleted, noted_at) AS found
    FROM erasure_progress WHERE environment_id = {environment: String} GROUP BY erasure_id
) AS progress ON request.erasure_id = progress.erasure_id
LEFT ANY JOIN
(
    SELECT erasure_id, min(fenced_at) AS first_fenced_at
    FROM erasure_fences
    WHERE environment_id = {environment: String}
        AND identity_key IN (SELECT arrayJoin(closure_keys) FROM erasure_progress WHERE environment_id = {environment: String})
    GROUP BY erasure_id
) AS fence ON request.erasure_id = fence.erasure_id
COMMENT 'portal_erasures(environment = …): erasure requests with the timestamps of their receipts; without a receipt, timestamps are 1970-01-01, except fenced_at';

-- One complete receipt, as returned to the requester of the erasure.
CREATE VIEW IF NOT EXISTS portal_erasure_receipt DEFINER = views SQL SECURITY DEFINER AS
WITH time -> concat(replaceOne(toString(time), ' ', 'T'), 'Z') AS iso
SELECT toJSONString(CAST(
    (toString(erasure_id), environment_id, lower(hex(closure_hash)), closure_count, iso(cutoff_at), iso(accepted_at), iso(fenced_at),
        iso(visibly_erased_at), iso(physically_erased_at), iso(log_expires_at), iso(log_expired_at), deleted, verified, log_ends, trace_id),
    'Tuple(erasureId String, environmentId String, closureHash String, closureCount UInt32, cutoffAt String, acceptedAt String, fencedAt String, visiblyErasedAt String, physicallyErasedAt Nullable(String), logExpiresAt String, logExpiredAt Nullable(String), deleted Map(String, UInt64), verified Map(String, UInt64), logEnds Map(String, UInt64), traceId String)'
    )) AS receipt
FROM erasure_receipts FINAL
WHERE environment_id = {environment: String} AND erasure_id = toUUIDOrZero({erasure: String})
COMMENT 'portal_erasure_receipt(environment = …, erasure = …): receipt of an erasure as JSON; no row until the erasure is complete';

-- Reads all requests and receipts of the environments, but only narrow columns. A receipt completes only an erasure in the
-- same environment.
CREATE VIEW IF NOT EXISTS portal_open_erasures DEFINER = views SQL SECURITY DEFINER AS
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
COMMENT 'portal_open_erasures(environments = […]): number of erasures, number of open erasures, and the oldest open erasure; oldest_at is 1970-01-01 if no erasure is open';

-- The live messages page uses this view to hide messages of erased identities. The view returns only keyed hashes and times. The
-- portal reads it in pages by key, then by the time of writing.
CREATE VIEW IF NOT EXISTS portal_fences DEFINER = views SQL SECURITY DEFINER AS
SELECT lower(hex(identity_key)) AS identity_id, cutoff_at, erasure_id, fenced_at
FROM erasure_fences
WHERE environment_id = {environment: String} AND identity_key > unhex({after: String})
    AND fenced_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
COMMENT 'portal_fences(environment = …, after = …, since = …): erased identities; an identity may have several rows until a merge';
