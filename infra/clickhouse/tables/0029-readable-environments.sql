-- What every row policy asks (users.xml). authenticatedUser() is the account that has logged in, also in a view with the
-- rights of another; currentUser() is whom a client of the native protocol says it asks for. Those named here run the
-- pipeline and see everything. Nobody has logged in where the engine itself loads the dictionary of persons, as `views`.
CREATE OR REPLACE VIEW readable_environments SQL SECURITY INVOKER AS
SELECT environment_id FROM analyst_grants FINAL WHERE account = authenticatedUser() AND NOT revoked
UNION ALL
SELECT '*' WHERE authenticatedUser() IN ('operator', 'writer') OR (authenticatedUser() = '' AND currentUser() = 'views')
COMMENT 'Environments whose rows the asking account may see through the views; * is all of them'
