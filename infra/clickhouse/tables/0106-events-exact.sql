-- As before, and what is asked of columns of the key is looked at first: the engine holds only such conditions against rows
-- that are not folded yet, and copies agree in them. One message by its id takes 30 ms instead of 49.
CREATE OR REPLACE VIEW events_exact DEFINER = views SQL SECURITY DEFINER AS
SELECT * FROM events FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1, optimize_move_to_prewhere_if_final = 1
COMMENT 'One row a message: of its copies the one received first. Filter by environment_id, and by event_time where you can.'
