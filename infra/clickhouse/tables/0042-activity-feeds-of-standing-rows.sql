-- Versions that stood before there were feeds, with the text that a writer would have given them. Not toString of a
-- contract: that leaves out zeros at its end.
INSERT INTO activity_feeds_filling (entry, chain, of_contract, of_type, updated_at, id, indexed_at, kafka_partition, superseded_at, members)
SELECT 'version', chain, feed.1, feed.2, updated_at, id, indexed_at, kafka_partition, fromUnixTimestamp64Micro(9007199254740990, 'UTC'),
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
ARRAY JOIN [('', ''), (unhex(hex(contract)), ''), ('', toString(type)), (unhex(hex(contract)), toString(type))] AS feed
SETTINGS max_threads = 1, max_insert_threads = 1, max_block_size = 8192, min_insert_block_size_bytes = 134217728, max_partitions_per_insert_block = 1000
