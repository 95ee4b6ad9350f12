import { describe, expect, it } from 'vitest';
import { Fenced } from './log-partition.ts';
import { commitOffset, createOwnedPartition, type OwnedPartition } from './owned-partition.ts';
import { Ownership, OwnershipOver } from './ownership.ts';
import { createStreamMetrics } from './stream-metrics.ts';

/** A partition whose commits meet these faults, one each, and succeed when there are none left. */
function openOwned(faults: (Error | (() => Error))[]): {
  owned: OwnedPartition;
  ownership: Ownership;
  asked: string[];
} {
  const asked: string[] = [];
  const ownership = new Ownership();
  const log: OwnedPartition['log'] = {
    topic: 'topic',
    partition: 2,
    committed: 0,
    metadata: null,
    start: 0,
    commit: async (offset, metadata) => {
      asked.push(`${offset} ${metadata}`);
      const fault = faults.shift();
      if (fault !== undefined) throw typeof fault === 'function' ? fault() : fault;
    },
    batchAt: async () => null,
    firstOffset: async () => 0,
    seek: () => {},
    pause: () => {},
    resume: () => {},
  };
  const owned = createOwnedPartition({ log, ownership, logger: undefined, metrics: createStreamMetrics(undefined) });
  return { owned, ownership, asked };
}

describe('a commit', () => {
  it('that is refused because the partition is somebody else’s is never tried again', async () => {
    const { owned, asked } = openOwned([new Fenced()]);
    await expect(commitOffset(owned, 7, 'intent')).rejects.toThrow(Fenced);
    expect(asked).toEqual(['7 intent']);
  });

  it('that gets no answer is tried again as it was', async () => {
    const { owned, asked } = openOwned([new Error('the coordinator is away')]);
    await commitOffset(owned, 7, 'intent');
    expect(asked).toEqual(['7 intent', '7 intent']);
  });

  it('is not tried again when the partition is no longer assigned here', async () => {
    const lose = () => {
      ownership.end();
      return new Error('the coordinator is away');
    };
    const { owned, ownership, asked } = openOwned([lose]);
    await expect(commitOffset(owned, 7, '')).rejects.toThrow(OwnershipOver);
    expect(asked).toHaveLength(1);
  });
});
