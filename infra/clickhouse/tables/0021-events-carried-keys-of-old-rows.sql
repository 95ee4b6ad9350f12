-- Rows from before get the filter in the background: four columns are read, and parts of one file are written anew.
-- Until a part has it, its rows are found by reading the four columns.
ALTER TABLE events MATERIALIZE INDEX carried_keys
