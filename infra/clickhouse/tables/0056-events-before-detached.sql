-- Waits for inserts that went into the former table alone.
DETACH TABLE IF EXISTS events_by_time SYNC
