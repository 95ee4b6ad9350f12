-- When each of them was superseded, where it was. Copies of a version, which nobody has folded yet, have the same time.
INSERT INTO activity_feeds_filling (entry, feed, updated_at, id, indexed_at, superseded_at)
WITH concat('0x', lower(hex(contract))) AS address
SELECT 'superseded', feed, updated_at, id, indexed_at, next_at
FROM
(
    SELECT chain, contract, type, updated_at, id, indexed_at,
        leadInFrame(updated_at) OVER (PARTITION BY chain, id ORDER BY updated_at ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next_at
    FROM activities
)
ARRAY JOIN [concat(chain, ' * *'), concat(chain, ' ', address, ' *'), concat(chain, ' * ', type), concat(chain, ' ', address, ' ', type)] AS feed
WHERE next_at > updated_at
SETTINGS max_threads = 1, max_insert_threads = 1, max_bytes_before_external_sort = 500000000, max_partitions_per_insert_block = 1000
