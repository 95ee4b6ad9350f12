-- Distribution of tracking consents
--
-- The current status of all anonymous identities that have made a consent choice. Identities that have not made a
-- choice have no row; their status is not_set.
--
-- Parameters:
--   environment  id of your environment. The commands use production; in a local stack, use demo-development
--
-- Cost: reads all consent changes in the environment.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production" --data-binary @12-consent-shares.sql
--   clickhouse-client --user analyst --database playline --param_environment=production < 12-consent-shares.sql
SELECT status, count() AS identities, identities / sum(identities) OVER () AS share
FROM analysis_consents_current
WHERE environment_id = {environment: String}
GROUP BY status
ORDER BY status
