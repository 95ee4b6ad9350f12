import { expect, it } from 'vitest';
import { createWorld } from '../test/lane-world.ts';
import { CHAIN, SIGNER } from '../test/mint-requests.ts';
import { LaneLost } from './lane-context.ts';

it('a lane ends when an operator has given up its waiting assets, even if it has nothing to write', async () => {
  const { takeOver, request, key, log, last } = createWorld();
  key.standing = { kind: 'waits', reason: 'The key is disabled.' };
  const lane = await takeOver();
  await lane.take([request('a', { tokenId: '7' })]);
  await lane.turn();
  const operator = await log.openWriter({ chain: CHAIN, signer: SIGNER });
  const failed = { status: 'failed', stage: 'settled', reason: null, error: 'Given up.', revision: 3 } as const;
  await operator.append({ states: [{ ...last(), ...failed }], transactions: [], forgotten: [] });
  await expect(lane.turn()).rejects.toThrow(LaneLost);
  expect((await takeOver()).ledger.pending).toEqual([]);
});

it('a lane that is over forgets no request, though it still holds the reference id that was given back', async () => {
  const { takeOver, request, node, time, log, last } = createWorld();
  const lane = await takeOver();
  node.isAway = true;
  await lane.take([request('a', { tokenId: '7' })]);
  const operator = await log.openWriter({ chain: CHAIN, signer: SIGNER });
  const failed = { status: 'failed', stage: 'settled', reason: null, error: 'Given up.', revision: 2 } as const;
  await operator.append({ states: [{ ...last(), ...failed }], transactions: [], forgotten: [] });
  time.ms += 1_000;
  // No node answers, so it writes nothing that would tell it.
  await expect(lane.turn()).rejects.toThrow('does not answer');
  const again = request('a', { tokenId: '7', attempt: 2 });
  await expect(lane.take([again])).rejects.toThrow(LaneLost);
  expect(await (await takeOver()).take([again])).toMatchObject({ dropped: 0, states: [{ status: 'pending' }] });
});
