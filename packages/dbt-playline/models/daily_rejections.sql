{{ config(unique_key=['environment_id', 'day'], order_by=['environment_id', 'day', 'code']) }}

SELECT
    environment_id,
    toDate(received_at) AS day,
    code,
    field,
    library,
    library_version,
    count() AS rejections,
    uniqExact(trace_id) AS requests
FROM {{ source('playline', 'analysis_rejections') }}
WHERE {{ since('received_at') }}
GROUP BY environment_id, day, code, field, library, library_version
