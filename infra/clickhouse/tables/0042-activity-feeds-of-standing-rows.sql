-- Versions that stood before there were feeds, with the text that a writer would have given them.
INSERT INTO activity_feeds_filling (entry, feed, updated_at, id, indexed_at, kafka_partition, superseded_at, members)
WITH concat('0x', lower(hex(contract))) AS address
SELECT 'version', feed, updated_at, id, indexed_at, kafka_partition, fromUnixTimestamp64Micro(9007199254740990, 'UTC'),
    concat('"type":"', type, '","details":', details,
        ',"updated_at":"', formatDateTime(updated_at, '%Y-%m-%dT%H:%i:%S.%fZ'),
        '","indexed_at":"', formatDateTime(indexed_at, '%Y-%m-%dT%H:%i:%S.%fZ'),
        '","blockchain_metadata":',
        if(isNull(transaction_hash) OR isNull(block_number) OR isNull(transaction_index), 'null', concat(
            '{"transaction_hash":"0x', lower(hex(assumeNotNull(transaction_hash))),
            '","block_number":', if(isNull(block_number), 'null', concat('"', toString(assumeNotNull(block_number)), '"')),
            ',"transaction_index":', if(isNull(transaction_index), 'null', concat('"', toString(assumeNotNull(transaction_index)), '"')),
            ',"log_index":', if(isNull(log_index), 'null', concat('"', toString(assumeNotNull(log_index)), '"')), '}')))
FROM activities
ARRAY JOIN [concat(chain, ' * *'), concat(chain, ' ', address, ' *'), concat(chain, ' * ', type), concat(chain, ' ', address, ' ', type)] AS feed
SETTINGS max_threads = 1, max_insert_threads = 1, max_block_size = 8192, min_insert_block_size_bytes = 134217728, max_partitions_per_insert_block = 1000
