{{ config(unique_key=['environment_id', 'active_week'], order_by=['environment_id', 'cohort', 'active_week']) }}

{# Whole weeks are computed again, because a week cannot be added up from days. #}
SELECT
    active.environment_id AS environment_id,
    toMonday(person.first_seen_day) AS cohort,
    toMonday(active.day) AS active_week,
    intDiv(active_week - cohort, 7) AS week,
    uniqExact(active.person_id) AS players
FROM {{ source('playline', 'person_days') }} AS active
INNER JOIN {{ source('playline', 'persons') }} AS person
    ON active.environment_id = person.environment_id AND active.person_id = person.person_id
{% if is_incremental() %}WHERE active.day >= toMonday(today() - {{ var('playline_lookback_days') }})
{% endif %}GROUP BY environment_id, cohort, active_week
