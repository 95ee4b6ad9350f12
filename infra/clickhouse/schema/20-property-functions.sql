-- Read one property of `properties`, `traits` or `safe_properties`, and return what JSONExtractString, or JSONExtract for
-- Nullable(Float64), returns. Parsing an object takes most of the time of such a query. These functions search the text
-- for the name instead, and parse an object only if the search could return a different value:
--
-- - The text contains a backslash: a quote can be part of a string.
-- - It contains a nested object, which can have a property of the same name.
-- - The search finds no text or number: the property is missing, has another type, or has white space around its colon.
-- - The name contains a quote, or begins with a character that can follow the last quote of a string.
--
-- The conditions are added instead of combined with OR, because ClickHouse would evaluate an expression twice if both OR
-- and the result contain it. `+ 0` changes -0 to 0. Functions belong to the server, not to the database.
CREATE OR REPLACE FUNCTION propertyText AS (json, name) ->
    if((json LIKE '%\\\\%') + (countSubstrings(json, '{') > 1) + match(name, '"|^[\\s:,\\]}]')
            + empty(simpleJSONExtractString(json, name)) = 0,
        simpleJSONExtractString(json, name),
        JSONExtractString(json, name));

CREATE OR REPLACE FUNCTION propertyNumber AS (json, name) ->
    if((json LIKE '%\\\\%') + (countSubstrings(json, '{') > 1) + match(name, '"|^[\\s:,\\]}]')
            + isNull(toFloat64OrNull(simpleJSONExtractRaw(json, name))) = 0,
        toFloat64OrNull(simpleJSONExtractRaw(json, name)) + 0,
        JSONExtract(json, name, 'Nullable(Float64)'));
