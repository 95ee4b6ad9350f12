-- The former table.
DROP TABLE IF EXISTS identity_overrides_by_week SYNC SETTINGS max_table_size_to_drop = 0
