import { createLogger } from '@playline/runtime';
import { expect, it, onTestFinished } from 'vitest';
import { CHAIN, SIGNER } from '../test/mint-requests.ts';
import { LaneLost } from './lane-context.ts';
import { LaneWorker } from './lane-worker.ts';
import type { MintLane } from './mint-lane.ts';

it('a worker whose lane another writer has taken over does not fence that writer when requests arrive', async () => {
  const fenced = Object.assign(new Error('fenced'), { type: 'PRODUCER_FENCED' });
  let opened = 0;
  const lane = {
    ledger: { isIdle: true },
    faults: [],
    endUnlinked: async () => {},
    turn: async () => {},
    take: () => Promise.reject(new LaneLost('what was written may not stand', { cause: fenced })),
    close: async () => {},
  };
  const worker = new LaneWorker({
    lane: { chain: CHAIN, signer: SIGNER },
    pollMs: 1_000,
    logger: createLogger({ service: 'minter', level: 'silent' }),
    takeOver: async () => {
      opened++;
      return lane as unknown as MintLane;
    },
  });
  onTestFinished(() => worker.close());
  await expect(worker.take([])).rejects.toThrow(LaneLost);
  for (let at = 0; at < 3; at++) await expect(worker.take([])).rejects.toThrow('another writer of the signer');
  expect(opened).toBe(1);
});
