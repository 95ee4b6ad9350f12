{{ config(unique_key=['environment_id', 'day'], order_by=['environment_id', 'day', 'surface']) }}

SELECT
    environment_id,
    day,
    surface,
    count() AS sessions,
    uniqExact(person_id) AS players,
    sum(events) AS events,
    quantileExact(0.5)(seconds) AS median_seconds
FROM {{ source('playline', 'sessions') }}
WHERE {{ since('day') }}
GROUP BY environment_id, day, surface
