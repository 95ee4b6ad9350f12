-- No page looks for ids by their time of indexing any more.
ALTER TABLE activity_ids DROP INDEX IF EXISTS ids, MODIFY COMMENT 'Versions of activities by id, and what never changes of them'
