-- As for events: writers may go on.
CREATE MATERIALIZED VIEW IF NOT EXISTS identity_overrides_arriving TO identity_overrides_by_week AS
SELECT environment_id, identity_key, person_key, kind, linked_at, version, now64(3) AS stored_at FROM identity_overrides
