-- Skipped if 1: SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'events' AND endsWith(sorting_key, ', type')
EXCHANGE TABLES events_by_time AND events
