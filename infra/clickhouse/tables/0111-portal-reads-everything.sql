-- As before (0029), and the account of the portal: it has no right but on views that ask for one environment or one project
-- by name (portal_…), so what it may see is said by each question. Who may ask which is told by the portal's accounts.
CREATE OR REPLACE VIEW readable_environments SQL SECURITY INVOKER AS
SELECT environment_id FROM analyst_grants FINAL WHERE account = authenticatedUser() AND NOT revoked
UNION ALL
SELECT '*' WHERE authenticatedUser() IN ('operator', 'writer', 'portal') OR (authenticatedUser() = '' AND currentUser() = 'views')
COMMENT 'Environments whose rows the asking account may see through the views; * is all of them'
