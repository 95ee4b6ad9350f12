-- A person keeps its key when a smaller person joins it: infra/decisions/0010.
ALTER TABLE identity_overrides COMMENT COLUMN person_key 'Identity key of a member that stands for the component: the person'
