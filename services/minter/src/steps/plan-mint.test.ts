import fc from 'fast-check';
import { expect, it } from 'vitest';
import { selectMintable } from './plan-mint.ts';

/** Simulates a contract that rejects bad assets, and the second of two assets with the same token. */
function createContract(isBad: (asset: number) => boolean) {
  let requested = 0;
  const simulate = async (assets: readonly number[]) => {
    requested++;
    const bad = assets.find(isBad);
    if (bad !== undefined) return { kind: 'reverted', message: `bad ${bad}` } as const;
    const isDuplicate = new Set(assets.map((asset) => asset % 1_000)).size < assets.length;
    return isDuplicate
      ? ({ kind: 'reverted', message: 'duplicate' } as const)
      : ({ kind: 'done', value: '0x' } as const);
  };
  return { simulate, requested: () => requested };
}

it('one bad asset in a hundred is isolated in at most sixteen calls', async () => {
  const { simulate, requested } = createContract((asset) => asset === 62);
  const all = Array.from({ length: 100 }, (_, at) => at);
  expect(await selectMintable(all, simulate)).toEqual({
    mintable: all.filter((asset) => asset !== 62),
    refused: [{ asset: 62, outcome: { kind: 'reverted', message: 'bad 62' } }],
    conflicting: [],
  });
  expect(requested()).toBeLessThanOrEqual(16);
});

it('the mintable assets fit in one call, and exactly the bad assets are refused', async () => {
  const lists = fc.uniqueArray(fc.integer({ min: 0, max: 2_999 }), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(lists, fc.integer({ min: 2, max: 9 }), async (list, every) => {
      const isBad = (asset: number) => asset % every === 0;
      const { simulate } = createContract(isBad);
      const { mintable, refused, conflicting } = await selectMintable(list, simulate);
      if (mintable.length > 0) expect((await simulate(mintable)).kind).toBe('done');
      expect(refused.map(({ asset }) => asset).sort()).toEqual(list.filter(isBad).sort());
      expect([...mintable, ...refused.map(({ asset }) => asset), ...conflicting].sort()).toEqual([...list].sort());
      for (const asset of conflicting) expect(mintable.some((other) => other % 1_000 === asset % 1_000)).toBe(true);
    }),
  );
});
