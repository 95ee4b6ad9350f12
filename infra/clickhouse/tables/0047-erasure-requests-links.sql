-- Decisions are gone when an erasure has swept them. A request that came meanwhile is about whoever was linked by its own
-- cut-off, so links stay here with their times, by keyed hashes only. Nobody asks for them behind its receipt: thirty days
-- are ten times what the log keeps.
ALTER TABLE erasure_requests ADD COLUMN IF NOT EXISTS links Array(Tuple(a_key FixedString(16), b_key FixedString(16), received_at DateTime64(3, 'UTC'), link_generation UInt8, link_offset UInt64, unlinked_at Nullable(DateTime64(3, 'UTC')))) COMMENT 'Links that the eraser has found and takes away: keyed hashes of both ids, when the link was received, the fact that said so last, and when they were parted' TTL toDateTime(requested_at) + INTERVAL 30 DAY
