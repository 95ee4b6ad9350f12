-- The current state of each attempt. The lower time bound prevents reading years of attempts.
CREATE VIEW IF NOT EXISTS portal_mints DEFINER = views SQL SECURITY DEFINER AS
SELECT
    chain, concat('0x', lower(hex(contract))) AS contract_address, reference_id, requested_at, changed_at,
    concat('0x', lower(hex(signer))) AS signer_address, concat('0x', lower(hex(owner))) AS owner_address, token_id, amount,
    status, stage, reason, error, if(transaction_hash IS NULL, NULL, concat('0x', lower(hex(transaction_hash)))) AS transaction,
    trace_id
FROM mint_requests FINAL
WHERE environment_id = {environment: String}
    AND requested_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND ({status: String} = '' OR status = {status: String})
COMMENT 'portal_mints(environment = …, since = …, status = …): mint requests with their current states';

-- The state of the signers of collections, derived from mint requests: when the minter last prepared or completed a signer's
-- transaction, which requires the minter role on the contract, and since when and why requests have been waiting for the
-- signer. If there is no such request, the time is 1970-01-01.
CREATE VIEW IF NOT EXISTS portal_mint_signers DEFINER = views SQL SECURITY DEFINER AS
SELECT
    environment_id, chain, concat('0x', lower(hex(contract))) AS contract_address, concat('0x', lower(hex(signer))) AS signer_address,
    maxIf(changed_at, status = 'succeeded' OR stage IN ('logged', 'mined')) AS held_at,
    countIf(stage = 'waiting') AS waiting, minIf(changed_at, stage = 'waiting') AS waits_at,
    ifNull(argMaxIf(reason, changed_at, stage = 'waiting'), '') AS why
FROM mint_requests FINAL
WHERE environment_id = {environment: String} AND requested_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
GROUP BY environment_id, chain, contract, signer
COMMENT 'portal_mint_signers(environment = …, since = …): signers per collection: last time the signer was able to mint, and why mint requests are waiting';
