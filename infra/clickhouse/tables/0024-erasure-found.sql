-- Where rows of a batch stand: part and offset. A delete by place reads no column of the rows, while one by key reads its
-- keys and times of every part that it touches: infra/decisions/0027. A place holds only until its part is merged or
-- changed, and then names nothing at all, as a part never takes the name of another.
CREATE TABLE IF NOT EXISTS erasure_found
(
    batch_id UUID COMMENT 'Batch of erasures that are done together',
    table_name LowCardinality(String) COMMENT 'Table of the row',
    column_name LowCardinality(String) COMMENT 'Column that names the identity',
    how LowCardinality(String) COMMENT 'own: the row is deleted; carried: it is somebody else''s',
    environment_id LowCardinality(String) COMMENT 'Environment of the identity',
    identity_key FixedString(16) COMMENT 'Keyed hash of the identity',
    part String COMMENT 'Part of the table that holds the row',
    part_offset UInt64 COMMENT 'Place of the row within the part'
)
ENGINE = MergeTree
PARTITION BY (batch_id, table_name)
ORDER BY (how, part, part_offset)
COMMENT 'Places of rows that are deleted now. Empty when no erasure runs.'
