-- Who is linked with whom is gone with the decisions of an erasure. Somebody whom only another erasure joins with the
-- subject is no member, and yet whoever is linked with them is asked for by a request that comes meanwhile.
ALTER TABLE erasure_requests ADD COLUMN IF NOT EXISTS parted_groups Array(Array(FixedString(16))) COMMENT 'Keyed hashes of ids that belong to the same person as well, in groups: those of a group were linked, and only another erasure joins them with the subject'
