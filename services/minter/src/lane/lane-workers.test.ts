import { describe, expect, it } from 'vitest';
import type { SignerLane } from '../ports.ts';
import { CHAIN, SIGNERS } from '../test/mint-requests.ts';
import { LaneWorkers } from './lane-worker.ts';

const [ONE, OTHER] = SIGNERS.map((signer): SignerLane => ({ chain: CHAIN, signer })) as [SignerLane, SignerLane];

/** Workers that record what happens to them, and the signers with pending assets, by partition. */
function openWorkers(pending: Map<number, SignerLane[]> = new Map()) {
  const logged: string[] = [];
  const idle = { is: false };
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
              return idle.is;
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
  return { workers, said: logged, idle, pending };
}

describe('the worker of a signer', () => {
  it('goes on while this process reads at least one of the partitions with requests of the signer', async () => {
    const { workers, said: logged } = openWorkers();
    expect(workers.of(ONE, 0)).toBe(workers.of(ONE, 3));
    workers.revoke(0);
    expect(logged).toEqual(['one opened']);
    workers.revoke(3);
    expect(logged).toEqual(['one opened', 'one closed']);
  });

  it('goes on when the end of an earlier assignment comes behind the beginning of the next one', async () => {
    const { workers, said: logged } = openWorkers(new Map([[0, [ONE]]]));
    await workers.assign({ partition: 0 });
    await workers.assign({ partition: 0 });
    workers.revoke(0);
    await workers.reconcile();
    expect(logged).toEqual(['one opened']);
    workers.revoke(0);
    expect(logged).toEqual(['one opened', 'one closed']);
  });

  it('goes on, and ends with its partition, whatever became of assignments that were never read for', async () => {
    const pending = new Map([[0, [ONE]]]);
    const { workers, said: logged } = openWorkers(pending);
    const [first, next] = [{ partition: 0 }, { partition: 0 }];
    const get = pending.get.bind(pending);
    pending.get = () => {
      throw new Error('Kafka is away');
    };
    for (let requested = 0; requested < 2; requested++) await expect(workers.assign(first)).rejects.toThrow('away');
    pending.get = get;
    await workers.assign(next);
    workers.revoke(0);
    expect(logged).toEqual(['one opened']);
    workers.revoke(0);
    expect(logged).toEqual(['one opened', 'one closed']);
  });

  it('is opened where the key of the signer falls when whoever read its earlier partition has left something pending', async () => {
    const { workers, said: logged, pending } = openWorkers();
    await workers.assign({ partition: 3 });
    pending.set(3, [ONE]);
    await workers.reconcile();
    expect(logged).toEqual(['one opened']);
    // It is opened only once.
    await workers.reconcile();
    expect(logged).toEqual(['one opened']);
  });

  it('is closed when its pending assets have belonged to another process for twelve looks', async () => {
    const { workers, said: logged, pending, idle } = openWorkers(new Map([[3, [OTHER]]]));
    const reconcile = async (count: number) => {
      for (let at = 0; at < count; at++) await workers.reconcile();
    };
    await workers.assign({ partition: 3 });
    workers.of(ONE, 0);
    idle.is = true;
    pending.clear();
    await reconcile(20);
    expect(logged).toEqual(['other opened', 'one opened']);
    idle.is = false;
    pending.set(3, [OTHER]);
    await reconcile(11);
    expect(logged).toEqual(['other opened', 'one opened']);
    await reconcile(1);
    expect(logged).toEqual(['other opened', 'one opened', 'one closed']);
    pending.clear();
    await workers.close();
    expect(logged.at(-1)).toBe('other closed');
  });

  it('is replaced when two looks in a row find pending assets that it does not know, and not after one', async () => {
    const { workers, said: logged, pending, idle } = openWorkers();
    await workers.assign({ partition: 3 });
    workers.of(ONE, 0);
    idle.is = true;
    pending.set(3, [ONE]);
    await workers.reconcile();
    pending.clear();
    await workers.reconcile();
    pending.set(3, [ONE]);
    await workers.reconcile();
    expect(logged).toEqual(['one opened']);
    await workers.reconcile();
    expect(logged).toEqual(['one opened', 'one closed', 'one opened']);
    idle.is = false;
    for (let at = 0; at < 20; at++) await workers.reconcile();
    // It lives as long as one of its partitions is read here.
    workers.revoke(0);
    expect(logged).toHaveLength(3);
    workers.revoke(3);
    expect(logged.at(-1)).toBe('one closed');
  });

  it('is not closed by looks that saw nothing pending between two of its requests, nor while requests arrive', async () => {
    const { workers, said: logged, pending } = openWorkers();
    await workers.assign({ partition: 3 });
    workers.of(ONE, 3);
    for (let round = 0; round < 5; round++) {
      for (let at = 0; at < 11; at++) await workers.reconcile();
      // Work in between: a look that finds it, then a request.
      pending.set(3, [ONE]);
      if (round % 2 === 0) await workers.reconcile();
      pending.clear();
      if (round % 2 === 1) workers.of(ONE, 3);
    }
    expect(logged).toEqual(['one opened']);
  });
});
