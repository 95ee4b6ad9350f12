-- An operator's unlink is a decision too.
ALTER TABLE identity_links COMMENT COLUMN outcome 'linked, unchanged, refused or ambiguous; of an unlink unlinked, unchanged or refused'
