-- Until now, what came in was written to the former table too.
DROP VIEW IF EXISTS events_arriving SYNC
