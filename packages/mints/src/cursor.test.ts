import type { CursorKey } from '@playline/contracts';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createMintCursors } from './store.ts';

const key = (id: number): CursorKey => ({ id, secret: Buffer.alloc(32, id) });
const cursors = createMintCursors({ keys: [key(1), key(2)] });
const scope = { collection: { chain: 'demo-chain', contractAddress: `0x${'c0'.repeat(20)}` }, status: null };
const position = fc.record({
  direction: fc.constantFrom('next' as const, 'previous' as const),
  gap: fc.record({
    side: fc.constantFrom('before' as const, 'after' as const),
    requestedAt: fc.integer({ min: 0, max: Date.UTC(2299, 0) }),
    attemptId: fc.stringMatching(/^[0-9a-f]{32}$/),
  }),
});

it('a mint request cursor can be decoded with any configured key', () => {
  const older = createMintCursors({ keys: [key(2)] });
  fc.assert(
    fc.property(position, (anyPosition) => {
      expect(cursors.decode(cursors.encode(anyPosition, scope), scope)).toEqual(anyPosition);
      expect(cursors.decode(older.encode(anyPosition, scope), scope)).toEqual(anyPosition);
    }),
  );
});

it('a mint request cursor is valid only for its chain, collection and status', () => {
  const { collection } = scope;
  const others = [
    { ...scope, status: 'failed' as const },
    { ...scope, collection: { ...collection, chain: 'other-chain' } },
    { ...scope, collection: { ...collection, contractAddress: `0x${'c1'.repeat(20)}` } },
  ];
  fc.assert(
    fc.property(position, fc.constantFrom(...others), (anyPosition, other) => {
      expect(cursors.decode(cursors.encode(anyPosition, scope), other)).toBeNull();
    }),
  );
});

it('a mint request cursor is rejected if a bit is changed, if its key is unknown, or if it is an arbitrary string', () => {
  const unknownCursors = createMintCursors({ keys: [key(3)] });
  fc.assert(
    fc.property(position, fc.nat(), fc.string(), (anyPosition, at, text) => {
      const bytes = Buffer.from(cursors.encode(anyPosition, scope), 'base64url');
      bytes[at % bytes.length]! ^= 1 << (at % 8);
      expect(cursors.decode(bytes.toString('base64url'), scope)).toBeNull();
      expect(cursors.decode(text, scope)).toBeNull();
      expect(cursors.decode(unknownCursors.encode(anyPosition, scope), scope)).toBeNull();
    }),
  );
});
