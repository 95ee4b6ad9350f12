-- Waits for inserts that began without the view.
DETACH TABLE IF EXISTS identity_overrides SYNC
