import { expect, it } from 'vitest';
import { explainLink } from './decisions.ts';

it.each([
  ['identify', 'linked', '', 'An identify message named A and B together, so they belong to one person.'],
  ['alias', 'linked', '', 'An alias message declared A and B to be one person, so they belong to one person.'],
  [
    'identify',
    'refused',
    'shared_device',
    'An identify message named A and B together. They were not linked: both sides already have a user, so several people share the device.',
  ],
  [
    'same_id',
    'ambiguous',
    '',
    'A and B are the same id, once with a type and once without. They were not linked: the untyped id belongs to the same id under another type.',
  ],
  ['unlink', 'unlinked', '', 'An operator requested to split A from B, so they belong to two persons.'],
  ['identify', 'unchanged', '', 'An identify message named A and B together. They already belonged to one person.'],
  ['unlink', 'unchanged', '', 'An operator requested to split A from B. There was nothing to split.'],
  [
    'unlink',
    'refused',
    'not_one_person',
    'An operator requested to split A from B. They were not split: the identities to split do not belong to one person.',
  ],
  [
    'allow',
    'unchanged',
    'operator_allowed',
    'Ruling about A: an operator allowed the id to link many anonymous ids (identity suspects).',
  ],
  ['constructor', 'linked', '', 'A message named A and B, so they belong to one person.'],
])('the explanation of a decision %s %s %s is a sentence', (link, outcome, reason, text) => {
  expect(explainLink({ link, outcome, reason }, 'A', 'B')).toBe(text);
});
