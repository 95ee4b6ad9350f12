import { parseMintBody } from '@playline/mints';
import { createRandom } from '@playline/testkit/random';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createRun } from '../run.ts';
import { createAssetMaker, type RequestedAsset, referencePrefix, THRESHOLD, toBody } from './assets.ts';
import { CONTRACTS } from './test-stage.ts';

const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 });

function drawMany(seed: number) {
  const run = createRun(seed, 0);
  const maker = createAssetMaker(run, createRandom(seed), CONTRACTS);
  const good = Array.from({ length: 40 }, () => maker.good());
  const bad = Array.from({ length: 14 }, () => maker.bad());
  return { run, maker, good, bad, rivals: maker.rivals() };
}

it('the assets of a mint simulation are well formed and are parsed as requested', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const { good, bad, rivals } = drawMany(seed);
      const all: RequestedAsset[] = [...good, ...bad, ...rivals];
      const read = parseMintBody(Buffer.from(JSON.stringify({ assets: all.map(toBody) })));
      const requested = all.map(({ referenceId, owner, tokenId, amount }) => {
        return { referenceId, ownerAddress: owner.toLowerCase(), tokenId, amount };
      });
      expect(read.map(({ metadata: _, ...asset }) => asset)).toEqual(requested);
    }),
    { numRuns: 50 },
  );
});

it('the assets of a mint simulation have unique reference ids, owners and chosen token ids', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const { run, maker, good, bad } = drawMany(seed);
      const ids = [...good, ...bad].map(({ referenceId }) => referenceId);
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids.every((id) => id.startsWith(referencePrefix(run)))).toBe(true);
      expect(good.every(({ owner }) => maker.isOwner(owner))).toBe(true);
      const other = drawMany(seed);
      expect(good.some(({ owner }) => other.maker.isOwner(owner))).toBe(false);
      const tokens = good.flatMap(({ collection, tokenId }) => (collection === 'erc721' && tokenId) || []);
      expect(new Set(tokens).size).toBe(tokens.length);
      expect(tokens.every((id) => BigInt(id) < THRESHOLD)).toBe(true);
    }),
    { numRuns: 50 },
  );
});

it('the assets of a mint simulation fail in every way before a way repeats', () => {
  const messages = drawMany(7).bad.map(({ expected }) => (expected.kind === 'failure' ? expected.message : ''));
  const kinds = messages.map((each) => each.replace(/\d{3,}/g, '…'));
  expect(new Set(kinds.slice(0, 7))).toEqual(new Set(kinds));
});
