{# First day that a run computes: everything on the first run, later the days that can still change. #}
{% macro since(column) %}
{%- if is_incremental() -%}
{{ column }} >= today() - {{ var('playline_lookback_days') }}
{%- else -%}
1
{%- endif -%}
{% endmacro %}
