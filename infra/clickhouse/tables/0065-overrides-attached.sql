-- And takes it back.
ATTACH TABLE IF NOT EXISTS identity_overrides
