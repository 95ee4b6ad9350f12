import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import type { ErasureRequest } from './records.ts';
import { findRequestFault } from './records.ts';

const TIME_MAX_MS = 2 ** 48 - 1;
const REQUEST: ErasureRequest = {
  erasureId: randomBytes(16),
  environmentId: 'demo_2-production',
  subjectKeys: [randomBytes(16)],
  memberKeys: [],
  cutoffAt: TIME_MAX_MS,
  requestedAt: 0,
  traceId: '',
};

it.each([
  ['the shortest environment id', { environmentId: 'e' }],
  ['the longest environment id', { environmentId: 'e'.repeat(64) }],
  ['several keys', { subjectKeys: [randomBytes(16), randomBytes(16)], memberKeys: [randomBytes(16)] }],
  ['the earliest and latest time that all stores can represent', {}],
])('a request is valid with %s', (_what, over) => {
  expect(findRequestFault({ ...REQUEST, ...over })).toBeNull();
});

it.each([
  ['no environment', { environmentId: '' }, 'not an environment id'],
  ['an environment id that is too long', { environmentId: 'e'.repeat(65) }, 'not an environment id'],
  ['an environment id that contains a brace', { environmentId: 'e}' }, 'not an environment id'],
  ['a line break in the environment id', { environmentId: 'env\n' }, 'not an environment id'],
  ['an erasure id that is too short', { erasureId: randomBytes(15) }, 'not an erasure id'],
  ['no subject', { subjectKeys: [], memberKeys: [randomBytes(16)] }, 'not identity keys'],
  ['a key that is too long', { memberKeys: [randomBytes(17)] }, 'not identity keys'],
  ['the zero key', { subjectKeys: [Buffer.alloc(16)] }, 'not identity keys'],
  ['a cut-off that is too large', { cutoffAt: TIME_MAX_MS + 1 }, 'time out of range'],
  ['a negative cut-off', { cutoffAt: -1 }, 'time out of range'],
  ['a fractional time', { requestedAt: 0.5 }, 'time out of range'],
  ['NaN as a time', { requestedAt: Number.NaN }, 'time out of range'],
])('a request is invalid with %s, and the reason contains no value', (_what, over, reason) => {
  expect(findRequestFault({ ...REQUEST, ...over })).toBe(reason);
});
