-- As events: an insert is acknowledged when it is on the disk, see infra/decisions/0014.
ALTER TABLE identity_links MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1
