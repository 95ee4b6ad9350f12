-- Assets of an environment that were asked to be minted, each attempt as it stands now. What a page looks at is the newest; the
-- bound of time keeps it from reading years of them.
CREATE OR REPLACE VIEW portal_mints DEFINER = views SQL SECURITY DEFINER AS
SELECT
    chain, concat('0x', lower(hex(contract))) AS contract_address, reference_id, requested_at, changed_at,
    concat('0x', lower(hex(signer))) AS signer_address, concat('0x', lower(hex(owner))) AS owner_address, token_id, amount,
    status, stage, reason, error, if(transaction_hash IS NULL, NULL, concat('0x', lower(hex(transaction_hash)))) AS transaction,
    trace_id
FROM mint_requests FINAL
WHERE environment_id = {environment: String}
    AND requested_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND ({status: String} = '' OR status = {status: String})
COMMENT 'portal_mints(environment = …, since = …, status = …): assets that were asked to be minted, and what became of them'
