-- What mints tell of the addresses that sign for collections: when the minter last had a transaction of one ready or settled,
-- for which it had asked the contract for the role, and since when and why assets of it wait. Times that there are not are
-- the epoch.
CREATE OR REPLACE VIEW portal_mint_signers DEFINER = views SQL SECURITY DEFINER AS
SELECT
    environment_id, chain, concat('0x', lower(hex(contract))) AS contract_address, concat('0x', lower(hex(signer))) AS signer_address,
    maxIf(changed_at, status = 'succeeded' OR stage IN ('logged', 'mined')) AS held_at,
    countIf(stage = 'waiting') AS waiting, minIf(changed_at, stage = 'waiting') AS waits_at,
    ifNull(argMaxIf(reason, changed_at, stage = 'waiting'), '') AS why
FROM mint_requests FINAL
WHERE environment_id = {environment: String} AND requested_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
GROUP BY environment_id, chain, contract, signer
COMMENT 'portal_mint_signers(environment = …, since = …): of each collection and signer of mints, whether the signer could mint, and what mints wait for'
