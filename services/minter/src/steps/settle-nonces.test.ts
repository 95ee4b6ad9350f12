import type { CarriedAsset } from '@playline/contracts';
import fc from 'fast-check';
import { encodeAbiParameters } from 'viem/utils';
import { expect, it } from 'vitest';
import { ownerOf, SWORDS, toBytes } from '../test/mint-requests.ts';
import {
  CONSECUTIVE_TRANSFER,
  type MintedToken,
  matchTokens,
  mintedTokensOf,
  TRANSFER_BATCH,
  TRANSFER_SINGLE,
} from './settle-nonces.ts';

const ZERO = `0x${'0'.repeat(64)}`;
const topic = (value: string | number) =>
  `0x${(typeof value === 'number' ? value.toString(16) : value.slice(2)).padStart(64, '0')}`;
const logOf = (topics: readonly string[], data: string) => ({ address: SWORDS, topics, data, logIndex: 3 });
const assetOf = (owner: number, tokenId: string | null): CarriedAsset => ({
  referenceId: 'a',
  attemptId: Buffer.alloc(16),
  tokenId,
  amount: null,
  ownerAddress: toBytes(ownerOf(owner)),
});

it('minted tokens are read from an event with a range of ids, up to a limit', () => {
  const data = (last: bigint) => encodeAbiParameters([{ type: 'uint256' }], [last]);
  const topics = [CONSECUTIVE_TRANSFER, topic(7), ZERO, topic(ownerOf(2))];
  const tokens = mintedTokensOf({ logs: [logOf(topics, data(8n))] }, SWORDS);
  expect(tokens).toEqual([
    { owner: ownerOf(2), tokenId: '7', amount: '1', logIndex: 3, item: 0 },
    { owner: ownerOf(2), tokenId: '8', amount: '1', logIndex: 3, item: 1 },
  ]);
  expect(mintedTokensOf({ logs: [logOf(topics, data(2n ** 200n))] }, SWORDS)).toHaveLength(1_000);
  expect(mintedTokensOf({ logs: [logOf(topics, data(3n))] }, SWORDS)).toEqual([]);
});

it('an event that cannot be decoded yields no minted tokens', () => {
  for (const event of [TRANSFER_SINGLE, TRANSFER_BATCH, CONSECUTIVE_TRANSFER])
    for (const data of ['0x', '0x01'])
      expect(
        mintedTokensOf({ logs: [logOf([event, topic(ownerOf(1)), ZERO, topic(ownerOf(2))], data)] }, SWORDS),
      ).toEqual([]);
});

it('minted tokens are matched with their assets in any event order', () => {
  const pairs = fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 40 })), {
    selector: ([, id]) => id,
    maxLength: 20,
  });
  const cases = pairs.chain((each) =>
    fc.tuple(
      fc.boolean(),
      fc.constant(each),
      fc.shuffledSubarray(each, { minLength: each.length, maxLength: each.length }),
    ),
  );
  fc.assert(
    fc.property(cases, ([hasIds, requested, token]) => {
      const assets = requested.map(([owner, id]) => assetOf(owner, hasIds ? String(id) : null));
      const tokens = token.map(
        ([owner, id], logIndex): MintedToken => ({
          owner: ownerOf(owner),
          tokenId: String(id),
          amount: '1',
          logIndex,
          item: 0,
        }),
      );
      const matched = matchTokens(assets, tokens);
      expect(new Set(matched).size).toBe(assets.length);
      for (const [at, token] of matched.entries()) {
        expect(token?.owner).toBe(ownerOf(requested[at]![0]));
        if (hasIds) expect(token?.tokenId).toBe(String(requested[at]![1]));
      }
    }),
  );
});
