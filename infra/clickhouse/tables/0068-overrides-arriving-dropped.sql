DROP VIEW IF EXISTS identity_overrides_arriving SYNC
