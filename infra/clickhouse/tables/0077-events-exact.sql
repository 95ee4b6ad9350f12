-- A copy of a message repeats its id, type, time, name and owner, and folds. An id that a client has used for another
-- message is another message: dropping it would lose data for a fault of the client. Copies have one time, so they stand
-- in one month, and months are folded one by one.
CREATE OR REPLACE VIEW events_exact DEFINER = views SQL SECURITY DEFINER AS
SELECT * FROM events FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1
COMMENT 'One row a message: of its copies the one received first. Filter by environment_id, and by event_time where you can.'
