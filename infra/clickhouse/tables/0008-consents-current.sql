-- What is true of each identity now. Within a partition the later offset wins, whatever the clocks say. An identity has
-- changes in a second partition only when partitions were added to the topic since; then the log's time decides.
CREATE OR REPLACE VIEW consents_current SQL SECURITY INVOKER AS
SELECT
    environment_id,
    identity_key,
    tupleElement(latest, 1) AS status,
    tupleElement(latest, 2) AS source,
    tupleElement(latest, 3) AS received_at,
    tupleElement(latest, 4) AS logged_at,
    tupleElement(latest, 5) AS trace_id
FROM
(
    SELECT environment_id, identity_key, argMax(last_change, (tupleElement(last_change, 4), kafka_partition)) AS latest
    FROM
    (
        SELECT
            environment_id,
            identity_key,
            kafka_partition,
            argMax((status, source, received_at, logged_at, trace_id), kafka_offset) AS last_change
        FROM consent_log
        GROUP BY environment_id, identity_key, kafka_partition
    )
    GROUP BY environment_id, identity_key
)
COMMENT 'Latest tracking consent of each identity. An identity without a row has the status not_set.'
