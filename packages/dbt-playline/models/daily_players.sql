{{ config(unique_key=['environment_id', 'day'], order_by=['environment_id', 'day']) }}

SELECT
    active.environment_id AS environment_id,
    active.day AS day,
    uniqExact(active.person_id) AS players,
    uniqExactIf(active.person_id, person.first_seen_day = active.day) AS new_players
FROM {{ source('playline', 'person_days') }} AS active
INNER JOIN {{ source('playline', 'persons') }} AS person
    ON active.environment_id = person.environment_id AND active.person_id = person.person_id
WHERE {{ since('active.day') }}
GROUP BY environment_id, day
