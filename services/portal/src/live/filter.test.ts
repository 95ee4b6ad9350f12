import { messageRecordOf } from '@playline/testkit/message-record';
import { expect, it } from 'vitest';
import { toMessageEntry, toRejectionEntry } from './entry.ts';
import { matchesFilter, NO_FILTER, parseFilter } from './filter.ts';

const key = Buffer.alloc(16, 7);
const messageId = Buffer.from('0b1f7a526c3e4d8a9f102e5c7d9a4b05', 'hex');
const source = { topic: 'm', partition: 2, offset: 9, timestampMs: 1, key: null, value: null, headers: {} };
const message = toMessageEntry(
  source,
  messageRecordOf('level_started', {
    messageId,
    userKey: key,
    type: 'track',
    surface: 'web',
    test: true,
    traceId: 'a'.repeat(32),
  }),
  100,
);
const rejection = toRejectionEntry(source, {
  environmentId: 'demo',
  code: 'INVALID_FORMAT',
  field: 'userId',
  surface: 'unity',
  library: '',
  libraryVersion: '',
  receivedAt: 1,
  traceId: 'b'.repeat(32),
  messageIndex: 0,
});
const matches = (query: string) => {
  const filter = parseFilter(new URLSearchParams(query), true);
  return [matchesFilter(filter, message, false), matchesFilter(filter, rejection, false)];
};

it.each([
  ['', true, true],
  ['type=track', true, false],
  [`identity=${'07'.repeat(16)}`, true, false],
  [`identity=${'ab'.repeat(16)}.${'07'.repeat(16)}`, true, false],
  [`identity=${'70'.repeat(16)}`, false, false],
  // The digits of the key occur here, but across the boundary between two other keys.
  [`identity=${'a0'.repeat(8)}${'70'.repeat(8)}.${'70'.repeat(8)}${'a0'.repeat(8)}`, false, false],
  ['type=page', false, false],
  ['name=LEVEL', true, false],
  ['name=ended', false, false],
  ['surface=web', true, false],
  ['surface=unity', false, true],
  ['test=yes', true, false],
  ['test=no', false, false],
  ['outcome=rejected', false, true],
  ['outcome=accepted', true, false],
  ['id=0B1F7A52-6C3E-4D8A-9F10-2E5C7D9A4B05', true, false],
  [`id=${'07'.repeat(16)}`, true, false],
  [`id=${'a'.repeat(32)}`, true, false],
  [`id=${'b'.repeat(32)}`, false, true],
  ['type=track&surface=unity', false, false],
  ['type=track&surface=web&test=yes&outcome=accepted&name=level', true, false],
])('the filter %j matches the message: %s, and the rejection: %s', (query, messageMatches, rejectionMatches) => {
  expect(matches(query)).toEqual([messageMatches, rejectionMatches]);
});

it('parseFilter rejects raw ids, because filters appear in URLs and logs', () => {
  for (const id of ['ada@example.org', 'player-1', '7656119', 'x'.repeat(32)])
    expect(() => parseFilter(new URLSearchParams({ id }), true)).toThrow('id: expected a message id');
});

it('parseFilter names the valid values and ignores unknown parameters', () => {
  expect(() => parseFilter(new URLSearchParams('outcome=lost'), true)).toThrow(
    'outcome: expected one of accepted, stored',
  );
  expect(() => parseFilter(new URLSearchParams({ name: 'x'.repeat(201) }), true)).toThrow('at most 200');
  expect(parseFilter(new URLSearchParams('other=1'), true)).toEqual(NO_FILTER);
});

it('a name filter does not match a fenced message', () => {
  const fenced = { ...message, message: null, outcome: 'fenced' as const };
  expect(matchesFilter(parseFilter(new URLSearchParams('name=level'), true), fenced, false)).toBe(false);
  expect(matchesFilter(parseFilter(new URLSearchParams('outcome=fenced'), true), fenced, false)).toBe(true);
});
