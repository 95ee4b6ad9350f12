{% test unique_columns(model, columns) %}
SELECT {{ columns | join(', ') }}, count() AS rows
FROM {{ model }}
GROUP BY {{ columns | join(', ') }}
HAVING rows > 1
{% endtest %}
