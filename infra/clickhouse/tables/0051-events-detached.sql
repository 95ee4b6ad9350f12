-- Waits for inserts that began without the view: their rows must be seen when the rows are copied.
DETACH TABLE IF EXISTS events SYNC
