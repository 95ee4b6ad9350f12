import { createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { describe, expect, it } from 'vitest';
import type { BlockName, StreamRecord } from '../ports.ts';
import { createMemoryLog } from '../test/memory/index.ts';
import { createTokenSink, TokenStore } from '../test/token-store.ts';
import { BlockPartition } from './block-partition.ts';
import { type ExaminedPartition, GuardedPartition } from './guarded-partition.ts';
import { NO_NOTE, parseMetadata, toMetadata } from './intent.ts';
import type { LogPartition } from './log-partition.ts';
import { createStreamMetrics } from './stream-metrics.ts';

const AT = { topic: 'topic', partition: 0 };

function createRecord(offset: number): StreamRecord {
  return { ...AT, offset, timestampMs: 1, key: null, value: Buffer.from(`record ${offset}`), headers: {} };
}

/** A partition whose commits are kept, examined as a log that begins at `start`. */
function openBench() {
  const committed = { offset: 0, metadata: '' };
  /** Whether it is known who leads: nothing can be looked at while it is not. */
  const state = { start: 0, opened: 0, isLeaderKnown: true, refreshed: 0, seeks: [] as number[] };
  const examine = async (): Promise<ExaminedPartition> => {
    if (!state.isLeaderKnown) throw new Error('not the leader any more');
    const { start } = state;
    const log: LogPartition = {
      ...AT,
      committed: committed.offset,
      metadata: committed.metadata,
      start,
      commit: async (offset, metadata) => void Object.assign(committed, { offset, metadata }),
      batchAt: async () => null,
      firstOffset: async () => 0,
      seek: (offset) => void state.seeks.push(offset),
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
      ...shared,
      log,
      sink: createTokenSink(store),
      deadLetters: createMemoryLog().openProducer(),
      limits: { rowsMax: 3, bytesMax: 1_000, ageMaxMs: 5 },
      sessionTimeoutMs: 60_000,
      waits: { attempt: wait, pause: wait },
    });
  };
  const open = async () =>
    new GuardedPartition(await examine(), {
      ...shared,
      groupId: 'group',
      whenExpired: 'passOver',
      drainBudgetMs: 10,
      openWorker,
      examine,
      readDecision: async () => null,
      refresh: async () => {
        state.refreshed++;
        state.isLeaderKnown = true;
      },
    });
  return { open, store, state, committed };
}

describe('a partition whose log begins behind what was fetched', () => {
  it('keeps records that exist nowhere else while the store refuses them, until the store is repaired', async () => {
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

describe('a partition whose leader has moved since it was last asked for', () => {
  it('asks who leads before it looks again, and reads on', async () => {
    const { open, state } = openBench();
    const guarded = await open();
    state.isLeaderKnown = false;
    guarded.outOfRange();
    await until('it reads on', () => state.opened === 2);
    expect(state.refreshed).toBe(1);
    guarded.end();
  });
});

describe('an answer from another place than the partition is read at', () => {
  it('is taken for an old one, however often it comes, and the partition is fetched again from its own place', async () => {
    const { open, state } = openBench();
    const guarded = await open();
    // Asked before the partition was looked at anew, twice from the same place.
    expect([guarded.acceptsFetchFrom(60), guarded.acceptsFetchFrom(60)]).toEqual([false, false]);
    expect(guarded.worker.next).toBe(0);
    expect(state.seeks).toEqual([0, 0, 0]);
    guarded.end();
  });

  it('is taken when retention has removed everything before it: the gap is skipped and counted once', async () => {
    const { open, state } = openBench();
    state.start = 10;
    const guarded = await open();
    expect(guarded.acceptsFetchFrom(10)).toBe(true);
    expect(guarded.worker.next).toBe(10);
    expect(guarded.acceptsFetchFrom(5)).toBe(true);
    guarded.end();
  });
});

describe('a partition whose log was replaced once', () => {
  it('names every block by the time of that decision, and calls every block tried that begins where rows may be stored', async () => {
    const { open, store, committed } = openBench();
    committed.metadata = toMetadata({ ...NO_NOTE, decidedAtMs: 7, isDecision: true, triedTo: 4 });
    const named: BlockName[] = [];
    store.onWrite = (block, moment) => void (moment === 'before' && named.push(block));
    const guarded = await open();
    guarded.worker.accept([0, 1, 2, 3, 4, 5, 6, 7, 8].map(createRecord), 9);
    await until('all is committed', () => committed.offset === 9);
    guarded.end();
    const told = named.map(({ start, logDecidedAtMs, triedBefore }) => [start, logDecidedAtMs, triedBefore]);
    expect(told).toEqual([
      [0, 7, true],
      [3, 7, true],
      [6, 7, false],
    ]);
    expect(parseMetadata(committed.metadata, 9)).toMatchObject({ decidedAtMs: 7, isDecision: false, triedTo: null });
  });

  it('tells the next owner up to which offset rows may be stored, until a block ends after that', async () => {
    const { open, committed } = openBench();
    committed.metadata = toMetadata({ ...NO_NOTE, decidedAtMs: 7, isDecision: true, triedTo: 4 });
    const guarded = await open();
    for (const [end, triedTo] of [
      [3, 4],
      [6, null],
    ] as const) {
      guarded.worker.accept([end - 3, end - 2, end - 1].map(createRecord), end);
      await until('a commit', () => committed.offset === end);
      expect(parseMetadata(committed.metadata, end).triedTo).toBe(triedTo);
    }
    guarded.end();
  });
});
