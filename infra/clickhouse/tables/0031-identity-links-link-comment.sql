-- An operator's unlink is a decision too.
ALTER TABLE identity_links COMMENT COLUMN link 'identify, alias, same_id: a typed id linked to the same id without type, or unlink: an operator asked to split a off from b'
