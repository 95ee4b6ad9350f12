-- Rows from before get the filters in the background: four columns are read, and parts of one file are written anew.
-- Until a part has them, its rows are found by reading the four columns.
ALTER TABLE events MATERIALIZE INDEX carried_keys, MATERIALIZE INDEX alias_keys
