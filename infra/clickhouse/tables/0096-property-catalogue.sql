-- Names of properties are what clients sent, and may name somebody: for those who may read raw ids.
CREATE OR REPLACE VIEW property_catalogue DEFINER = views SQL SECURITY DEFINER AS
SELECT
    event_name, property.1 AS property_name,
    arraySort(groupUniqArray(property.2)) AS types,
    count() AS events,
    events / any(of_name) AS share,
    min(event_time) AS first_seen_at, max(event_time) AS last_seen_at
FROM
(
    SELECT event_name, event_time, properties, count() OVER (PARTITION BY event_name) AS of_name
    FROM analysis_events_raw
    WHERE environment_id = {environment: String}
        AND event_time >= {since: DateTime64(3, 'UTC')} AND event_time < {until: DateTime64(3, 'UTC')}
)
ARRAY JOIN arrayMap(each -> (each, toString(JSONType(properties, each))), JSONExtractKeys(properties)) AS property
GROUP BY event_name, property_name
COMMENT 'property_catalogue(environment = …, since = …, until = …): properties of each event in the span, types seen, share of its events that have it'
