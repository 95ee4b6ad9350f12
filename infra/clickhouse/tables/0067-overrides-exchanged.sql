-- Skipped if 1: SELECT count() FROM system.columns WHERE database = currentDatabase() AND table = 'identity_overrides' AND name = 'stored_at'
EXCHANGE TABLES identity_overrides_by_week AND identity_overrides
