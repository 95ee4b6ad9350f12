import { createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { describe, expect, it } from 'vitest';
import { createMemoryLog } from '../memory/index.ts';
import type { StreamRecord } from '../ports.ts';
import { createTokenSink, TokenStore } from '../test/token-store.ts';
import { BlockPartition } from './block-partition.ts';
import { type ExaminedPartition, GuardedPartition } from './guarded-partition.ts';
import type { LogPartition } from './log-partition.ts';
import { createStreamMetrics } from './stream-metrics.ts';

const AT = { topic: 'topic', partition: 0 };

function createRecord(offset: number): StreamRecord {
  return { ...AT, offset, timestampMs: 1, key: null, value: Buffer.from(`record ${offset}`), headers: {} };
}

/** A partition whose commits are kept, examined as a log that begins at `start`. */
function openBench() {
  const committed = { offset: 0, metadata: '' };
  const state = { start: 0, opened: 0 };
  const examine = async (): Promise<ExaminedPartition> => {
    const { start } = state;
    const log: LogPartition = {
      ...{ ...AT, committed: committed.offset, metadata: committed.metadata, start },
      commit: async (offset, metadata) => void Object.assign(committed, { offset, metadata }),
      batchAt: async () => null,
      seek() {},
      pause() {},
      resume() {},
    };
    return { log, finding: committed.offset < start ? { kind: 'expired', start } : { kind: 'unproven' } };
  };
  const store = new TokenStore();
  const metrics = createStreamMetrics(createMetrics('test'));
  const shared = { logger: undefined, metrics };
  const wait = { minMs: 300, maxMs: 300 };
  const openWorker = (log: LogPartition) => {
    state.opened++;
    return new BlockPartition({
      ...{ ...shared, log, sink: createTokenSink(store), deadLetters: createMemoryLog().openProducer() },
      ...{ limits: { rowsMax: 3, bytesMax: 1_000, ageMaxMs: 5 }, sessionTimeoutMs: 60_000 },
      waits: { attempt: wait, standstill: wait },
    });
  };
  const open = async () =>
    new GuardedPartition(await examine(), {
      ...{ ...shared, groupId: 'group', whenExpired: 'passOver', drainBudgetMs: 10 },
      ...{ openWorker, examine, readDecision: async () => null },
    });
  return { open, store, state, committed };
}

describe('a partition whose log begins behind what was fetched', () => {
  it('keeps the records that nothing else has while the store refuses them for good, until the store is mended', async () => {
    const { open, store, state, committed } = openBench();
    const gate = Promise.withResolvers<void>();
    let inserts = 0;
    store.onInsert = async () => {
      await gate.promise;
      return inserts++ === 0 ? 'broken' : 'stored';
    };
    const guarded = await open();
    guarded.worker.accept([0, 1, 2].map(createRecord), 3);
    state.start = 10;
    guarded.outOfRange();
    gate.resolve();
    await until('it reads on', () => state.opened === 2);
    expect(store.offsets(AT.topic)).toEqual(['0/0', '0/1', '0/2']);
    expect(committed.offset).toBe(3);
    guarded.end();
  });
});
