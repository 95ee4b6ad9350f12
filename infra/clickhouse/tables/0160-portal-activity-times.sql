-- Where a page of activities begins: between two times, the time of the version of a contract that has so many newer ones. The
-- portal asks for it when ClickHouse has refused to read all of that span. Rows are read in the order of the feed, so the query
-- ends after so many of each part, however many there are. Times are epoch microseconds. Superseded versions count as well.
CREATE OR REPLACE VIEW portal_activity_times DEFINER = views SQL SECURITY DEFINER AS
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
COMMENT 'portal_activity_times(contract = chain 0x…, type = …, since = …, until = …, newer = …): between two times, that of the version with so many newer ones'
