-- And takes it back.
ATTACH TABLE IF NOT EXISTS events
