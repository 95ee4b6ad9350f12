-- The address of a request is shown for exactly 90 days, however late a merge deletes it.
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
COMMENT 'portal_audit(project = …, since = …, until = …, actor = …, action = …): entries of a project; project is empty for the instance';
