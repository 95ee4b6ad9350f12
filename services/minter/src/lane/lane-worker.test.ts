import { createLogger } from '@playline/runtime';
import { expect, it, onTestFinished } from 'vitest';
import type { SignerLane } from '../ports.ts';
import { CHAIN, SIGNER, SIGNERS } from '../test/mint-requests.ts';
import { LaneLost } from './lane-context.ts';
import { LaneWorker, LaneWorkers } from './lane-worker.ts';
import type { MintLane } from './mint-lane.ts';

it('a worker whose lane was taken over does not fence the new writer when requests arrive', async () => {
  const fenced = Object.assign(new Error('fenced'), { type: 'PRODUCER_FENCED' });
  let opened = 0;
  const lane = {
    ledger: { isIdle: true },
    faults: [],
    failUnlinked: async () => {},
    turn: async () => {},
    accept: () => Promise.reject(new LaneLost('the outcome of a write is unknown', { cause: fenced })),
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
  await expect(worker.accept([])).rejects.toThrow(LaneLost);
  for (let at = 0; at < 3; at++) await expect(worker.accept([])).rejects.toThrow('another writer has taken over');
  expect(opened).toBe(1);
});

const [ONE, OTHER] = SIGNERS.map((signer): SignerLane => ({ chain: CHAIN, signer })) as [SignerLane, SignerLane];

/** Opens workers that log when they are opened and closed. @param pending signers with pending assets by partition */
function openWorkers(pending: Map<number, SignerLane[]> = new Map()) {
  const logged: string[] = [];
  const idle = { isIdle: false };
  const nameOf = ({ signer }: SignerLane) => (signer === ONE.signer ? 'one' : 'other');
  const workers = new LaneWorkers({
    open: (lane) => {
      logged.push(`${nameOf(lane)} opened`);
      const close = async () => void logged.push(`${nameOf(lane)} closed`);
      return {
        lane,
        close,
        current: {
          ledger: {
            get isIdle() {
              return idle.isIdle;
            },
          },
        },
      };
    },
    find: async (partition) => pending.get(partition) ?? [],
    onFault: (fault) => {
      throw fault;
    },
  });
  return { workers, logged, idle, pending };
}

it("a worker stays open while this process reads a partition with the signer's requests", async () => {
  const { workers, logged } = openWorkers();
  expect(workers.of(ONE, 0)).toBe(workers.of(ONE, 3));
  workers.revoke(0);
  expect(logged).toEqual(['one opened']);
  workers.revoke(3);
  expect(logged).toEqual(['one opened', 'one closed']);
});

it("a worker stays open if a partition's previous assignment ends after the next assignment begins", async () => {
  const { workers, logged } = openWorkers(new Map([[0, [ONE]]]));
  await workers.assign({ partition: 0 });
  await workers.assign({ partition: 0 });
  workers.revoke(0);
  await workers.reconcile();
  expect(logged).toEqual(['one opened']);
  workers.revoke(0);
  expect(logged).toEqual(['one opened', 'one closed']);
});

it('a worker is closed when its partition is revoked, even after failed assignments', async () => {
  const pending = new Map([[0, [ONE]]]);
  const { workers, logged } = openWorkers(pending);
  const [first, next] = [{ partition: 0 }, { partition: 0 }];
  const get = pending.get.bind(pending);
  pending.get = () => {
    throw new Error('Kafka is unavailable');
  };
  for (let requested = 0; requested < 2; requested++)
    await expect(workers.assign(first)).rejects.toThrow('unavailable');
  pending.get = get;
  await workers.assign(next);
  workers.revoke(0);
  expect(logged).toEqual(['one opened']);
  workers.revoke(0);
  expect(logged).toEqual(['one opened', 'one closed']);
});

it('a worker is opened for pending assets that another process wrote to an assigned partition', async () => {
  const { workers, logged, pending } = openWorkers();
  await workers.assign({ partition: 3 });
  pending.set(3, [ONE]);
  await workers.reconcile();
  expect(logged).toEqual(['one opened']);
  await workers.reconcile();
  expect(logged).toEqual(['one opened']);
});

it('a worker is closed after twelve checks in which its pending assets belong to another process', async () => {
  const { workers, logged, pending, idle } = openWorkers(new Map([[3, [OTHER]]]));
  const reconcile = async (count: number) => {
    for (let at = 0; at < count; at++) await workers.reconcile();
  };
  await workers.assign({ partition: 3 });
  workers.of(ONE, 0);
  idle.isIdle = true;
  pending.clear();
  await reconcile(20);
  expect(logged).toEqual(['other opened', 'one opened']);
  idle.isIdle = false;
  pending.set(3, [OTHER]);
  await reconcile(11);
  expect(logged).toEqual(['other opened', 'one opened']);
  await reconcile(1);
  expect(logged).toEqual(['other opened', 'one opened', 'one closed']);
  pending.clear();
  await workers.close();
  expect(logged.at(-1)).toBe('other closed');
});

it('a worker is replaced after two consecutive checks find pending assets that are missing from its ledger', async () => {
  const { workers, logged, pending, idle } = openWorkers();
  await workers.assign({ partition: 3 });
  workers.of(ONE, 0);
  idle.isIdle = true;
  pending.set(3, [ONE]);
  await workers.reconcile();
  pending.clear();
  await workers.reconcile();
  pending.set(3, [ONE]);
  await workers.reconcile();
  expect(logged).toEqual(['one opened']);
  await workers.reconcile();
  expect(logged).toEqual(['one opened', 'one closed', 'one opened']);
  idle.isIdle = false;
  for (let at = 0; at < 20; at++) await workers.reconcile();
  // The worker stays open while one of its partitions is read here.
  workers.revoke(0);
  expect(logged).toHaveLength(3);
  workers.revoke(3);
  expect(logged.at(-1)).toBe('one closed');
});

it('a worker stays open if checks between requests find no pending assets', async () => {
  const { workers, logged, pending } = openWorkers();
  await workers.assign({ partition: 3 });
  workers.of(ONE, 3);
  for (let round = 0; round < 5; round++) {
    for (let at = 0; at < 11; at++) await workers.reconcile();
    // Every round has pending assets, which either a check or a request finds.
    pending.set(3, [ONE]);
    if (round % 2 === 0) await workers.reconcile();
    pending.clear();
    if (round % 2 === 1) workers.of(ONE, 3);
  }
  expect(logged).toEqual(['one opened']);
});
