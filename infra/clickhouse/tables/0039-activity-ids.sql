-- By its new name: which versions an activity has is now asked by the id alone. A writer that does not fill
-- activity_feeds knows only the former name, so from here on it waits, until one that does takes over what it had begun.
RENAME TABLE IF EXISTS activity_versions TO activity_ids
