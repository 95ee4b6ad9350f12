-- What happened on chains to contracts, each activity once, in its last version. The portal asks for the contracts that an
-- environment has linked, each as `chain 0x…`: whatever else is in the list names nothing, so the feed of a whole chain
-- cannot be asked for. It reads the entries of those contracts between two times of versions. Of the versions at `until`, only
-- those before the id `before` are read; that is where the previous page ended. Times of versions are epoch microseconds,
-- those of indexing epoch milliseconds. Empty texts filter nothing.
--
-- It finds the newest 1,001 versions by narrow columns, and reads the text of those alone. ClickHouse refuses a question that
-- would read more rows than the bound, as soon as it knows: the portal then asks for a shorter time. So a contract of
-- millions of activities costs a page no more than any other.
--
-- A search for a token reads the granules that pass the filter over token ids, and only these count for the bound: a year of
-- contracts is one question. Of superseded entries it reads those at the places that it has found.
CREATE OR REPLACE VIEW portal_activities DEFINER = views SQL SECURITY DEFINER AS
WITH asked AS (
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
        AND feed IN (SELECT name FROM asked)
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
                AND feed IN (SELECT name FROM asked)
                AND updated_at >= fromUnixTimestamp64Micro({since: Int64}, 'UTC')
                AND updated_at <= fromUnixTimestamp64Micro({until: Int64}, 'UTC')
                AND ({token: String} = '' OR (feed, updated_at, id) IN (
                    SELECT feed, updated_at, id
                    FROM activity_feeds
                    WHERE entry = 'version'
                        AND feed IN (SELECT name FROM asked)
                        AND updated_at >= fromUnixTimestamp64Micro({since: Int64}, 'UTC')
                        AND updated_at <= fromUnixTimestamp64Micro({until: Int64}, 'UTC')
                        AND has(arrayMap(part -> substringIndex(part, '"', 1), arraySlice(splitByString('"token_id":"', members), 2)), {token: String}))))
    ORDER BY updated_at DESC, id DESC
    LIMIT 1 BY feed, updated_at, id
    LIMIT 1001)
LIMIT 1 BY feed, updated_at, id
SETTINGS max_rows_to_read = 100000, use_skip_indexes_on_data_read = 0
COMMENT 'portal_activities(contracts = [chain 0x…], type = …, token = …, since = …, until = …, before = …, indexed_since = …, indexed_until = …): the newest 1,001 activities of contracts between two times, each in its last version'
