-- The client address is returned for exactly 90 days, regardless of when a merge deletes it.
CREATE VIEW IF NOT EXISTS portal_audit DEFINER = views SQL SECURITY DEFINER AS
SELECT
    environment_id, happened_at, entry_id, kind, object, revision, action, actor, request_id,
    if(happened_at > now() - INTERVAL 90 DAY, address, '') AS address, detail
FROM audit_log FINAL
WHERE project_id = {project: String}
    AND happened_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
    AND happened_at < fromUnixTimestamp64Milli({until: Int64}, 'UTC')
    AND ({actor: String} = '' OR actor = {actor: String})
    AND ({action: String} = '' OR action = {action: String})
COMMENT 'portal_audit(project = …, since = …, until = …, actor = …, action = …): audit entries of a project, or of the instance if project is empty';
