import { expect, it } from 'vitest';
import { createWorld } from '../test/lane-world.ts';
import { CHAIN, SIGNER } from '../test/mint-requests.ts';
import { LaneOver } from './lane-over.ts';

it('a lane ends when an operator has given up its waiting assets, even if it has nothing to write', async () => {
  const { takeOver, request, key, log, last } = createWorld();
  key.standing = { kind: 'waits', reason: 'The key is disabled.' };
  const lane = await takeOver();
  await lane.take([request('a', { tokenId: '7' })]);
  await lane.turn();
  const operator = await log.openWriter({ chain: CHAIN, signer: SIGNER });
  const failed = { status: 'failed', stage: 'settled', reason: null, error: 'Given up.', revision: 3 } as const;
  await operator.append({ states: [{ ...last(), ...failed }], transactions: [], forgotten: [] });
  await expect(lane.turn()).rejects.toThrow(LaneOver);
  expect((await takeOver()).ledger.pending).toEqual([]);
});
