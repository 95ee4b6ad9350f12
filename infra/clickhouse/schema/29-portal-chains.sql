-- Activities of contracts, each once in its last version. The portal passes the contracts that an environment has linked, each as
-- `chain 0x…`. Other elements of the list match nothing, so the feed of a whole chain cannot be read. It reads the entries of
-- these contracts between two times of versions. At `until` itself only versions before the id `before` are read; that is where
-- the previous page ended. Times of versions are epoch microseconds, times of indexing epoch milliseconds. Empty texts filter
-- nothing.
--
-- It finds the newest 1,001 versions by narrow columns and reads only their text. ClickHouse refuses a query that would read more
-- rows than the limit before it reads them, and the portal then queries a shorter time. So a contract with millions of
-- activities costs a page no more than any other.
--
-- A search for a token reads the granules that pass the filter over token ids, and only these count towards the limit: a year of
-- contracts is one query. Of superseded entries it reads those of the versions that it has found.
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
COMMENT 'portal_activities(contracts = [chain 0x…], type = …, token = …, since = …, until = …, before = …, indexed_since = …, indexed_until = …): the newest 1,001 activities of contracts between two times, each in its last version';

-- Where a page of activities begins: the time of the version that has `newer` newer ones. The portal reads it after ClickHouse has
-- refused to read the whole span. Rows are read in the order of the feed, so the query ends after so many rows of each part.
-- Times are epoch microseconds. Superseded versions count as well.
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
COMMENT 'portal_activity_times(contract = chain 0x…, type = …, since = …, until = …, newer = …): time of the version that has so many newer ones between two times';

-- Reads a few granules for each contract. Contracts are passed as to portal_activities.
CREATE VIEW IF NOT EXISTS portal_tokens DEFINER = views SQL SECURITY DEFINER AS
SELECT chain, concat('0x', lower(hex(contract))) AS contract_address, name, symbol, decimals, verification_status
FROM tokens FINAL
WHERE (chain, contract) IN (
    SELECT splitByChar(' ', contract)[1], toFixedString(unhex(substring(splitByChar(' ', contract)[2], 3)), 20)
    FROM (SELECT arrayJoin({contracts: Array(String)}) AS contract)
    WHERE match(contract, '^[a-z0-9-]{1,64} 0x[0-9a-f]{40}$'))
COMMENT 'portal_tokens(contracts = [chain 0x…]): names, symbols and decimals of contracts that are fungible tokens';
