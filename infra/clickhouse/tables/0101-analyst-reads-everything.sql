-- The account that every deployment has. Whoever takes this away says so later, so a repetition does not bring it back.
INSERT INTO analyst_grants (account, environment_id, revoked, changed_at, version) VALUES ('analyst', '*', false, now64(3), 1)
