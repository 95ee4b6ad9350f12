-- An insert is acknowledged when its files and their folder are on the disk: what it costs stands in infra/decisions/0014.
ALTER TABLE events MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1
