import { describe, expect, it } from 'vitest';
import { Epoch, EpochOver } from './epoch.ts';
import { Fenced } from './log-partition.ts';
import { createStreamMetrics } from './stream-metrics.ts';
import { commitOffset, createTenure, type Tenure } from './tenure.ts';

/** A partition whose commits meet these faults, one each, and succeed when there are none left. */
function openTenure(faults: (Error | (() => Error))[]): { tenure: Tenure; epoch: Epoch; asked: string[] } {
  const asked: string[] = [];
  const epoch = new Epoch();
  const log: Tenure['log'] = {
    ...{ topic: 'topic', partition: 2, committed: 0, metadata: null, start: 0 },
    commit: async (offset, metadata) => {
      asked.push(`${offset} ${metadata}`);
      const fault = faults.shift();
      if (fault !== undefined) throw typeof fault === 'function' ? fault() : fault;
    },
    batchAt: async () => null,
    firstOffset: async () => 0,
    ...{ seek: () => {}, pause: () => {}, resume: () => {} },
  };
  const tenure = createTenure({ log, epoch, logger: undefined, metrics: createStreamMetrics(undefined) });
  return { tenure, epoch, asked };
}

describe('a commit', () => {
  it('that is refused because the partition is somebody else’s is never tried again', async () => {
    const { tenure, asked } = openTenure([new Fenced()]);
    await expect(commitOffset(tenure, 7, 'intent')).rejects.toThrow(Fenced);
    expect(asked).toEqual(['7 intent']);
  });

  it('that gets no answer is tried again as it was', async () => {
    const { tenure, asked } = openTenure([new Error('the coordinator is away')]);
    await commitOffset(tenure, 7, 'intent');
    expect(asked).toEqual(['7 intent', '7 intent']);
  });

  it('is not tried again when the partition is not ours any more', async () => {
    const lose = () => {
      epoch.end();
      return new Error('the coordinator is away');
    };
    const { tenure, epoch, asked } = openTenure([lose]);
    await expect(commitOffset(tenure, 7, '')).rejects.toThrow(EpochOver);
    expect(asked).toHaveLength(1);
  });
});
