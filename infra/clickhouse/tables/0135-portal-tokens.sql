-- What a chain calls contracts, of those that are fungible tokens. Asked for as portal_activities is. A few granules each.
CREATE OR REPLACE VIEW portal_tokens DEFINER = views SQL SECURITY DEFINER AS
SELECT chain, concat('0x', lower(hex(contract))) AS contract_address, name, symbol, decimals, verification_status
FROM tokens FINAL
WHERE (chain, contract) IN (
    SELECT splitByChar(' ', contract)[1], toFixedString(unhex(substring(splitByChar(' ', contract)[2], 3)), 20)
    FROM (SELECT arrayJoin({contracts: Array(String)}) AS contract)
    WHERE match(contract, '^[a-z0-9-]{1,64} 0x[0-9a-f]{40}$'))
COMMENT 'portal_tokens(contracts = [chain 0x…]): names, symbols and decimals of contracts that are fungible tokens'
