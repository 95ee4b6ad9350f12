-- The former table.
DROP TABLE IF EXISTS identity_overrides_by_week SYNC
