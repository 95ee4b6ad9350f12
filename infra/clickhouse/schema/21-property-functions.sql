-- Read one property of `properties`, `traits` or `safe_properties`, and return what JSONExtractString, or JSONExtract for
-- Nullable(Float64), returns. Parsing an object takes most of the time of such a query. These functions search the text
-- for the name instead, and parse an object only if the search could return something else:
--
-- - The text contains a backslash: a quote can be part of a string.
-- - It contains a nested object, which can have a property of the same name.
-- - The search finds no text or number: the property is missing, has another type, or follows white space.
-- - The name contains a quote.
--
-- The conditions are added up, because ClickHouse evaluates an expression twice if AND and the result contain it. Functions
-- belong to the server, not to the database.
CREATE OR REPLACE FUNCTION propertyText AS (json, name) ->
    if((json LIKE '%\\\\%') + (countSubstrings(json, '{') > 1) + (position(name, '"') > 0)
            + empty(simpleJSONExtractString(json, name)) = 0,
        simpleJSONExtractString(json, name),
        JSONExtractString(json, name));

CREATE OR REPLACE FUNCTION propertyNumber AS (json, name) ->
    if((json LIKE '%\\\\%') + (countSubstrings(json, '{') > 1) + (position(name, '"') > 0)
            + isNull(toFloat64OrNull(simpleJSONExtractRaw(json, name))) = 0,
        toFloat64OrNull(simpleJSONExtractRaw(json, name)),
        JSONExtract(json, name, 'Nullable(Float64)'));
