import { createLogger } from '@playline/runtime';
import { until } from '@playline/testkit';
import { it } from 'vitest';
import { createWorld } from '../test/lane-world.ts';
import { CHAIN, SIGNER } from '../test/mint-requests.ts';
import { LaneWorker, LaneWorkers } from './lane-worker.ts';

it('assets that another process has left pending are begun by a process whose own worker of the signer was idle', async () => {
  const world = createWorld();
  const lane = { chain: CHAIN, signer: SIGNER };
  const logger = createLogger({ service: 'minter', level: 'silent' });
  const workers = new LaneWorkers({
    open: () => new LaneWorker({ lane, logger, pollMs: 1, takeOver: world.takeOver }),
    find: async () => (world.log.states.at(-1)?.status === 'pending' ? [lane] : []),
    onFault: (fault) => {
      throw fault;
    },
  });
  // It reads earlier requests of the signer, from before partitions were added, and all of them have ended.
  const worker = workers.of(lane, 0);
  await until('the lane is open', () => worker.current?.ledger.isIdle);
  // The process that reads the later requests accepts one, and dies. Its partition is read here from now on.
  const other = await world.takeOver();
  await other.take([world.request('a', { tokenId: '7' })]);
  await workers.assign({ partition: 3 });
  await until('the asset is begun', async () => {
    await workers.reconcile();
    return world.last().nonce === 0;
  });
  await workers.close();
});
