-- The latest version of each contract activity. The portal passes the contracts linked to an environment, each as `chain 0x…`.
-- Other list elements match nothing, so the feed of a whole chain cannot be read. The query reads the contracts' entries whose
-- version times are in the time range. At `until` itself, where the previous page ended, it returns only versions whose id is
-- less than `before`. Version times are epoch microseconds, indexing times epoch milliseconds. An empty parameter does not
-- filter.
--
-- The query finds the newest 1,001 versions by narrow columns and then reads only their JSON. If a query would exceed the row
-- limit, ClickHouse refuses it before reading, and the portal queries a shorter time range. A page therefore costs the same
-- for a contract with millions of activities as for any other contract.
--
-- A search for a token reads only the granules that pass the filter on token ids, and only these count towards the limit, so
-- one query covers a year. Of the superseded entries, it reads only those for the versions found.
CREATE VIEW IF NOT EXISTS portal_activities DEFINER = views SQL SECURITY DEFINER AS
WITH requested AS (
    SELECT concat(contract, ' ', if({type: String} = '', '*', {type: String})) AS name
    FROM (SELECT arrayJoin({contracts: Array(String)}) AS contract)
    WHERE match(contract, '^[a-z0-9-]{1,64} 0x[0-9a-f]{40}$'))
SELECT
    splitByChar(' ', feed)[1] AS chain, splitByChar(' ', feed)[2] AS contract_address, id, updated_at, indexed_at, members
FROM activity_feeds
WHERE entry = 'version' AND (feed, updated_at, id) IN (
    SELECT feed, updated_at, id
    FROM activity_feeds
    WHERE entry = 'version'
        AND feed IN (SELECT name FROM requested)
        AND updated_at >= fromUnixTimestamp64Micro({since: Int64}, 'UTC')
        AND updated_at <= fromUnixTimestamp64Micro({until: Int64}, 'UTC')
        AND (updated_at < fromUnixTimestamp64Micro({until: Int64}, 'UTC') OR id < toUUIDOrZero({before: String}))
        AND indexed_at >= fromUnixTimestamp64Milli({indexed_since: Int64}, 'UTC')
        AND indexed_at < fromUnixTimestamp64Milli({indexed_until: Int64}, 'UTC')
        AND ({token: String} = '' OR has(arrayMap(part -> substringIndex(part, '"', 1), arraySlice(splitByString('"token_id":"', members), 2)), {token: String}))
        AND (feed, updated_at, id) NOT IN (
            SELECT feed, updated_at, id
            FROM activity_feeds
            WHERE entry = 'superseded'
                AND feed IN (SELECT name FROM requested)
                AND updated_at >= fromUnixTimestamp64Micro({since: Int64}, 'UTC')
                AND updated_at <= fromUnixTimestamp64Micro({until: Int64}, 'UTC')
                AND ({token: String} = '' OR (feed, updated_at, id) IN (
                    SELECT feed, updated_at, id
                    FROM activity_feeds
                    WHERE entry = 'version'
                        AND feed IN (SELECT name FROM requested)
                        AND updated_at >= fromUnixTimestamp64Micro({since: Int64}, 'UTC')
                        AND updated_at <= fromUnixTimestamp64Micro({until: Int64}, 'UTC')
                        AND has(arrayMap(part -> substringIndex(part, '"', 1), arraySlice(splitByString('"token_id":"', members), 2)), {token: String}))))
    ORDER BY updated_at DESC, id DESC
    LIMIT 1 BY feed, updated_at, id
    LIMIT 1001)
LIMIT 1 BY feed, updated_at, id
SETTINGS max_rows_to_read = 100000, use_skip_indexes_on_data_read = 0
COMMENT 'portal_activities(contracts = [chain 0x…], type = …, token = …, since = …, until = …, before = …, indexed_since = …, indexed_until = …): latest versions of the newest 1,001 activities of the given contracts in a time range';

-- The start time of an activities page: the time of the version after the `newer` newest versions. The portal reads this view
-- after ClickHouse has refused the complete time range. Rows are read in feed order, so the query stops after `newer` rows in
-- each part. Times are epoch microseconds. Superseded versions are included.
CREATE VIEW IF NOT EXISTS portal_activity_times DEFINER = views SQL SECURITY DEFINER AS
SELECT
    splitByChar(' ', feed)[1] AS chain, splitByChar(' ', feed)[2] AS contract_address,
    toUnixTimestamp64Micro(updated_at) AS updated_us
FROM activity_feeds
WHERE entry = 'version'
    AND feed = if(
        match({contract: String}, '^[a-z0-9-]{1,64} 0x[0-9a-f]{40}$'),
        concat({contract: String}, ' ', if({type: String} = '', '*', {type: String})), '')
    AND updated_at >= fromUnixTimestamp64Micro({since: Int64}, 'UTC')
    AND updated_at < fromUnixTimestamp64Micro({until: Int64}, 'UTC')
ORDER BY feed DESC, updated_at DESC, id DESC
LIMIT 1 OFFSET {newer: UInt32}
SETTINGS max_block_size = 256, read_in_order_use_buffering = 0, optimize_move_to_prewhere = 0, use_skip_indexes_on_data_read = 0
COMMENT 'portal_activity_times(contract = chain 0x…, type = …, since = …, until = …, newer = …): time of the version that is older than the given number of versions in a time range';

-- Reads a few granules per contract. Contracts have the format of portal_activities.
CREATE VIEW IF NOT EXISTS portal_tokens DEFINER = views SQL SECURITY DEFINER AS
SELECT chain, concat('0x', lower(hex(contract))) AS contract_address, name, symbol, decimals, verification_status
FROM tokens FINAL
WHERE (chain, contract) IN (
    SELECT splitByChar(' ', contract)[1], toFixedString(unhex(substring(splitByChar(' ', contract)[2], 3)), 20)
    FROM (SELECT arrayJoin({contracts: Array(String)}) AS contract)
    WHERE match(contract, '^[a-z0-9-]{1,64} 0x[0-9a-f]{40}$'))
COMMENT 'portal_tokens(contracts = [chain 0x…]): names, symbols and decimals of fungible token contracts';
