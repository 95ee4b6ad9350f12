import { ACTIVITY_TYPES } from '@playline/contracts';
import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type CursorPosition, type CursorScope, createCursors, MICROSECONDS_MAX, START_GAP } from './cursor.ts';
import { NO_FILTERS } from './store.ts';
import { addressOf } from './test/rows.ts';

const keyOf = (id: number) => ({ id, secret: Buffer.alloc(32, id + 1) });
const cursors = createCursors({ keys: [keyOf(3)] });
const position: CursorPosition = { gap: { ...START_GAP, side: 'after', updatedAt: 12_345 }, direction: 'next' };
const scope: CursorScope = { chain: 'main', filters: NO_FILTERS };

const times = fc.option(fc.nat(MICROSECONDS_MAX));
const positions: fc.Arbitrary<CursorPosition> = fc.record({
  gap: fc.record({
    side: fc.constantFrom('before' as const, 'after' as const),
    updatedAt: fc.nat(MICROSECONDS_MAX),
    id: fc.uuid(),
  }),
  direction: fc.constantFrom('next' as const, 'previous' as const),
});
const scopes: fc.Arbitrary<CursorScope> = fc.record({
  chain: fc.constantFrom('main', 'main-2', 'test'),
  filters: fc.record({
    fromIndexedAt: times,
    toIndexedAt: times,
    contractAddress: fc.option(fc.nat(3).map(addressOf)),
    type: fc.option(fc.constantFrom(...ACTIVITY_TYPES)),
  }),
});

it('a cursor encodes its position in 79 characters that are safe in a URL', () => {
  fc.assert(
    fc.property(positions, scopes, (anyPosition, anyScope) => {
      const text = cursors.encode(anyPosition, anyScope);
      expect(text).toMatch(/^[A-Za-z0-9_-]{79}$/);
      expect(cursors.decode(text, anyScope)).toEqual({ ok: true, position: anyPosition });
    }),
  );
});

it('a cursor is rejected for a different chain or filter', () => {
  fc.assert(
    fc.property(positions, scopes, scopes, (anyPosition, anyScope, otherScope) => {
      fc.pre(JSON.stringify(anyScope) !== JSON.stringify(otherScope));
      expect(cursors.decode(cursors.encode(anyPosition, anyScope), otherScope)).toEqual({
        ok: false,
        reason: 'mismatched',
      });
    }),
  );
  const otherChain = { ...scope, chain: 'main-2' };
  expect(cursors.decode(cursors.encode(position, scope), otherChain)).toEqual({ ok: false, reason: 'mismatched' });
  const swappedFilters = { ...NO_FILTERS, toIndexedAt: 5 };
  const text = cursors.encode(position, { chain: 'main', filters: { ...NO_FILTERS, fromIndexedAt: 5 } });
  expect(cursors.decode(text, { chain: 'main', filters: swappedFilters })).toEqual({ ok: false, reason: 'mismatched' });
});

it('a cursor is rejected when any bit is changed', () => {
  const bytes = Buffer.from(cursors.encode(position, scope), 'base64url');
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const edited = Buffer.from(bytes);
    edited[bit >> 3]! ^= 1 << (bit & 7);
    expect(cursors.decode(edited.toString('base64url'), scope)).toMatchObject({ ok: false });
  }
});

it('decoding any other string as a cursor reports it as malformed without throwing', () => {
  const good = cursors.encode(position, scope);
  const texts = ['', '=', 'null', '💥', `${good}=`, `${good} `, ` ${good}`, good.slice(1), `${good}AAAA`, '%00'];
  for (const text of texts) expect(cursors.decode(text, scope)).toEqual({ ok: false, reason: 'malformed' });
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: codePoint }), fc.base64String()), (text) => {
      expect(cursors.decode(text, scope).ok).toBe(false);
    }),
  );
});

it('each cursor has exactly one valid encoding', () => {
  const good = cursors.encode(position, scope);
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const forms = [...alphabet].filter((last) => cursors.decode(good.slice(0, -1) + last, scope).ok);
  expect(forms).toEqual([good.at(-1)]);
});

it('a cursor is valid as long as its key is configured, and is rejected with any other key', () => {
  const previous = createCursors({ keys: [keyOf(1)] });
  const rotated = createCursors({ keys: [keyOf(2), keyOf(1)] });
  expect(rotated.decode(previous.encode(position, scope), scope)).toEqual({ ok: true, position: position });
  expect(previous.decode(rotated.encode(position, scope), scope)).toEqual({ ok: false, reason: 'invalid-signature' });
  const sameId = createCursors({ keys: [{ id: 1, secret: Buffer.alloc(32, 9) }] });
  expect(sameId.decode(previous.encode(position, scope), scope)).toEqual({ ok: false, reason: 'invalid-signature' });
});

it.each([
  ['no key', []],
  ['a short secret', [{ id: 1, secret: Buffer.alloc(31) }]],
  ['a key id above 255', [{ id: 256, secret: Buffer.alloc(32) }]],
  ['two secrets with the same id', [keyOf(1), { ...keyOf(1), secret: Buffer.alloc(40) }]],
])('cursors cannot be created with %s', (_what, keys) => {
  expect(() => createCursors({ keys })).toThrow(RangeError);
});
