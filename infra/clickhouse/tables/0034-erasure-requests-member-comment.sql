-- Whom the eraser has found stays here when its work is done: requests that came meanwhile are about them too.
ALTER TABLE erasure_requests COMMENT COLUMN member_keys 'Keyed hashes of the ids that belong to the same person: those that were linked when the request was accepted, then all that the eraser has found'
