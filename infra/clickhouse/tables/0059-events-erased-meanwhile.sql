-- An erasure that ran while the rows were copied swept the former table. Fences since the day before say who it was about.
DELETE FROM events WHERE (
    (environment_id, identity_key) IN (SELECT environment_id, identity_key FROM erasure_fences WHERE fenced_at > (SELECT min(applied_at) - INTERVAL 1 DAY FROM applied_sql_files WHERE name = '0048-events-by-time.sql'))
    OR (environment_id, from_key) IN (SELECT environment_id, identity_key FROM erasure_fences WHERE fenced_at > (SELECT min(applied_at) - INTERVAL 1 DAY FROM applied_sql_files WHERE name = '0048-events-by-time.sql'))
    OR (environment_id, to_key) IN (SELECT environment_id, identity_key FROM erasure_fences WHERE fenced_at > (SELECT min(applied_at) - INTERVAL 1 DAY FROM applied_sql_files WHERE name = '0048-events-by-time.sql'))
) AND arrayExists(key -> toUnixTimestamp64Milli(least(event_time, received_at)) <= transform(concat(key, environment_id),
    (SELECT arrayMap(each -> each.1, arraySort(groupArray((name, cutoff)))) FROM (SELECT concat(identity_key, environment_id) AS name, max(toUnixTimestamp64Milli(cutoff_at)) AS cutoff FROM erasure_fences WHERE fenced_at > (SELECT min(applied_at) - INTERVAL 1 DAY FROM applied_sql_files WHERE name = '0048-events-by-time.sql') GROUP BY name)),
    (SELECT arrayMap(each -> each.2, arraySort(groupArray((name, cutoff)))) FROM (SELECT concat(identity_key, environment_id) AS name, max(toUnixTimestamp64Milli(cutoff_at)) AS cutoff FROM erasure_fences WHERE fenced_at > (SELECT min(applied_at) - INTERVAL 1 DAY FROM applied_sql_files WHERE name = '0048-events-by-time.sql') GROUP BY name)),
    toInt64(-1)), [identity_key, from_key, to_key])
