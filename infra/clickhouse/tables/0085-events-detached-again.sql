-- Waits for inserts that began without the views on events.
DETACH TABLE IF EXISTS events SYNC
