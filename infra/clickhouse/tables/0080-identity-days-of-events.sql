-- An alias is about its two sides, and no activity of its owner: erasing a side takes nothing from the owner. A copy that comes again adds nothing new, so whatever is written twice stays true.
CREATE MATERIALIZED VIEW IF NOT EXISTS identity_days_of_events TO identity_days AS
SELECT environment_id, identity_key, toDate(event_time) AS day, event_name, test
FROM events
WHERE identity_key != toFixedString('', 16) AND type != 'alias'
GROUP BY environment_id, identity_key, day, event_name, test
