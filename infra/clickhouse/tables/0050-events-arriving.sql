-- Writers may go on while the rows are copied: what they write from here on stands in both tables.
CREATE MATERIALIZED VIEW IF NOT EXISTS events_arriving TO events_by_time AS SELECT * FROM events
