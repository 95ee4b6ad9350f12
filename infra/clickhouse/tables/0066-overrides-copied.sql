INSERT INTO identity_overrides_by_week
SELECT environment_id, identity_key, person_key, kind, linked_at, version, toDateTime64(0, 3, 'UTC') AS stored_at FROM identity_overrides
