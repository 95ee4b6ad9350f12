-- Waits for what was on its way into the table under its former name: what such an insert supersedes must be seen when the
-- feeds are filled.
DETACH TABLE IF EXISTS activity_ids SYNC
