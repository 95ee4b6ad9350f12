-- An erasure that ran while the rows were copied swept the former table.
DELETE FROM identity_overrides
WHERE (environment_id, identity_key) IN (SELECT environment_id, identity_key FROM erasure_fences WHERE fenced_at > (SELECT min(applied_at) - INTERVAL 1 DAY FROM applied_sql_files WHERE name = '0062-overrides-by-week.sql'))
    AND toUnixTimestamp64Milli(linked_at) <= transform(concat(identity_key, environment_id),
        (SELECT arrayMap(each -> each.1, arraySort(groupArray((name, cutoff)))) FROM (SELECT concat(identity_key, environment_id) AS name, max(toUnixTimestamp64Milli(cutoff_at)) AS cutoff FROM erasure_fences WHERE fenced_at > (SELECT min(applied_at) - INTERVAL 1 DAY FROM applied_sql_files WHERE name = '0062-overrides-by-week.sql') GROUP BY name)),
        (SELECT arrayMap(each -> each.2, arraySort(groupArray((name, cutoff)))) FROM (SELECT concat(identity_key, environment_id) AS name, max(toUnixTimestamp64Milli(cutoff_at)) AS cutoff FROM erasure_fences WHERE fenced_at > (SELECT min(applied_at) - INTERVAL 1 DAY FROM applied_sql_files WHERE name = '0062-overrides-by-week.sql') GROUP BY name)),
        toInt64(-1))
