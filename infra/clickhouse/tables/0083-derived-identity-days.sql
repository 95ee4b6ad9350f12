-- What identity_days has to hold for the events of a span: what fills it, makes it anew and checks it reads this.
CREATE OR REPLACE VIEW derived_identity_days SQL SECURITY INVOKER AS
SELECT environment_id, identity_key, toDate(event_time) AS day, event_name, test
FROM events
WHERE identity_key != toFixedString('', 16) AND type != 'alias' AND event_time >= {since: DateTime64(3, 'UTC')} AND event_time < {until: DateTime64(3, 'UTC')}
GROUP BY environment_id, identity_key, day, event_name, test
COMMENT 'Days and names of the events from since to before until, as identity_days has them'
