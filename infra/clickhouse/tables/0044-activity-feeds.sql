-- Filled: readers and writers of this release, which wait for the name, may begin.
RENAME TABLE IF EXISTS activity_feeds_filling TO activity_feeds
