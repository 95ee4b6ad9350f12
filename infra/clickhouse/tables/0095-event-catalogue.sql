CREATE OR REPLACE VIEW event_catalogue DEFINER = views SQL SECURITY DEFINER AS
SELECT type, event_name, count() AS events, events / sum(events) OVER () AS share,
    min(event_time) AS first_seen_at, max(event_time) AS last_seen_at
FROM analysis_events
WHERE environment_id = {environment: String}
    AND event_time >= {since: DateTime64(3, 'UTC')} AND event_time < {until: DateTime64(3, 'UTC')}
GROUP BY type, event_name
COMMENT 'event_catalogue(environment = …, since = …, until = …): names of events in the span, how many of each, its share of all, first and last seen'
