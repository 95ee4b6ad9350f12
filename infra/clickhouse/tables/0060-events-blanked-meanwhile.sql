-- And whose rows of other owners it had blanked.
ALTER TABLE events UPDATE anonymous_key = toFixedString('', 16), anonymous_id = ''
WHERE (environment_id, anonymous_key) IN (SELECT environment_id, identity_key FROM erasure_fences WHERE fenced_at > (SELECT min(applied_at) - INTERVAL 1 DAY FROM applied_sql_files WHERE name = '0048-events-by-time.sql'))
    AND toUnixTimestamp64Milli(least(event_time, received_at)) <= transform(concat(anonymous_key, environment_id),
        (SELECT arrayMap(each -> each.1, arraySort(groupArray((name, cutoff)))) FROM (SELECT concat(identity_key, environment_id) AS name, max(toUnixTimestamp64Milli(cutoff_at)) AS cutoff FROM erasure_fences WHERE fenced_at > (SELECT min(applied_at) - INTERVAL 1 DAY FROM applied_sql_files WHERE name = '0048-events-by-time.sql') GROUP BY name)),
        (SELECT arrayMap(each -> each.2, arraySort(groupArray((name, cutoff)))) FROM (SELECT concat(identity_key, environment_id) AS name, max(toUnixTimestamp64Milli(cutoff_at)) AS cutoff FROM erasure_fences WHERE fenced_at > (SELECT min(applied_at) - INTERVAL 1 DAY FROM applied_sql_files WHERE name = '0048-events-by-time.sql') GROUP BY name)),
        toInt64(-1))
SETTINGS mutations_sync = 2
