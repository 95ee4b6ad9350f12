-- As events: decisions from before get the filter in the background.
ALTER TABLE identity_links MATERIALIZE INDEX carried_keys
