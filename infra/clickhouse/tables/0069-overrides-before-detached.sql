-- As for events: waits for inserts that went into the former table alone.
DETACH TABLE IF EXISTS identity_overrides_by_week SYNC
