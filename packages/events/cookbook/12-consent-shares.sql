-- Shares of tracking consents
--
-- Of the anonymous identities that ever set a consent, how many have which one now. Those that never set one have no row:
-- their status is not_set.
--
-- Change:
--   environment  id of your environment; the commands have production, a local stack has demo-development
--
-- Cost: reads every change of a consent in the environment.
--
-- Run:
--   curl -sS -u "analyst:$CLICKHOUSE_PASSWORD" "$CLICKHOUSE_URL/?database=playline&param_environment=production" --data-binary @12-consent-shares.sql
--   clickhouse-client --user analyst --database playline --param_environment=production < 12-consent-shares.sql
SELECT status, count() AS identities, identities / sum(identities) OVER () AS share
FROM analysis_consents_current
WHERE environment_id = {environment: String}
GROUP BY status
ORDER BY status
