{{ config(unique_key=['environment_id', 'day'], order_by=['environment_id', 'day', 'event_name', 'library_version']) }}

SELECT
    environment_id,
    local_day AS day,
    type,
    event_name,
    library,
    library_version,
    count() AS events,
    uniqExact(person_id) AS players
FROM {{ source('playline', 'analysis_events') }}
{# local_day alone would read all events. #}
WHERE {{ since('local_day') }} AND {{ since('event_time + INTERVAL 1 DAY') }}
GROUP BY environment_id, day, type, event_name, library, library_version
