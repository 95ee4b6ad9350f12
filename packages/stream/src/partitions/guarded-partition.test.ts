import { createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import type { BlockName } from '../ports.ts';
import { fakeLog, toRecords } from '../test/fake-log.ts';
import { createMemoryLog } from '../test/memory/index.ts';
import { createTokenSink, TokenStore } from '../test/token-store.ts';
import { BlockPartition } from './block-partition.ts';
import { type ExaminedPartition, GuardedPartition } from './guarded-partition.ts';
import { NO_NOTE, parseMetadata, toMetadata } from './intent.ts';
import type { LogPartition } from './log-partition.ts';
import { createStreamMetrics } from './stream-metrics.ts';

const AFTER_DECISION = toMetadata({ ...NO_NOTE, decidedAtMs: 7, isDecision: true, triedTo: 4 });
const rows = (count: number) => Array.from({ length: count }, (_, i) => `row ${i}`);

function openBench() {
  const committed = { offset: 0, metadata: '' };
  const state = { start: 0, opened: 0, isLeaderKnown: true, refreshed: 0, seeks: [] as number[] };
  const examine = async (): Promise<ExaminedPartition> => {
    if (!state.isLeaderKnown) throw new Error('no longer the leader');
    const { start } = state;
    const log = fakeLog({
      committed: committed.offset,
      metadata: committed.metadata,
      start,
      commit: async (offset, metadata) => void Object.assign(committed, { offset, metadata }),
      seek: (offset) => void state.seeks.push(offset),
    });
    return { log, finding: committed.offset < start ? { kind: 'expired', start } : { kind: 'unproven' } };
  };
  const store = new TokenStore();
  const shared = { logger: undefined, metrics: createStreamMetrics(createMetrics('test')) };
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
      whenExpired: 'skip',
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

it('a partition keeps fetched records that retention deleted until a recovered store has stored them', async () => {
  const { open, store, state, committed } = openBench();
  const gate = Promise.withResolvers<void>();
  let inserts = 0;
  store.onInsert = async () => {
    await gate.promise;
    return inserts++ === 0 ? 'broken' : 'stored';
  };
  const guarded = await open();
  guarded.worker.accept(toRecords(rows(3)), 3);
  state.start = 10;
  guarded.outOfRange();
  gate.resolve();
  await until('the partition is reopened', () => state.opened === 2);
  expect(store.offsets('topic')).toEqual(['0/0', '0/1', '0/2']);
  expect(committed.offset).toBe(3);
  guarded.end();
});

it('a partition whose leader has moved finds the new leader before it is examined again', async () => {
  const { open, state } = openBench();
  const guarded = await open();
  state.isLeaderKnown = false;
  guarded.outOfRange();
  await until('the partition is reopened', () => state.opened === 2);
  expect(state.refreshed).toBe(1);
  guarded.end();
});

it('a fetch that starts after the next offset is outdated and is repeated each time', async () => {
  const { open, state } = openBench();
  const guarded = await open();
  expect([guarded.acceptsFetchFrom(60), guarded.acceptsFetchFrom(60)]).toEqual([false, false]);
  expect(guarded.worker.next).toBe(0);
  expect(state.seeks).toEqual([0, 0, 0]);
  guarded.end();
});

it('a fetch that starts at the start of the log skips the offsets that retention deleted', async () => {
  const { open, state } = openBench();
  state.start = 10;
  const guarded = await open();
  expect(guarded.acceptsFetchFrom(10)).toBe(true);
  expect(guarded.worker.next).toBe(10);
  expect(guarded.acceptsFetchFrom(5)).toBe(true);
  guarded.end();
});

it('blocks of a replaced log contain the decision time, and are marked as tried if they may have rows', async () => {
  const { open, store, committed } = openBench();
  committed.metadata = AFTER_DECISION;
  const written: BlockName[] = [];
  store.onWrite = (block, phase) => void (phase === 'before' && written.push(block));
  const guarded = await open();
  guarded.worker.accept(toRecords(rows(9)), 9);
  await until('all records are committed', () => committed.offset === 9);
  guarded.end();
  expect(written.map(({ start, logDecidedAtMs, triedBefore }) => [start, logDecidedAtMs, triedBefore])).toEqual([
    [0, 7, true],
    [3, 7, true],
    [6, 7, false],
  ]);
  expect(parseMetadata(committed.metadata, 9)).toMatchObject({ decidedAtMs: 7, isDecision: false, triedTo: null });
});

it('commits in a replaced log contain the end of the offsets that may have rows', async () => {
  const { open, committed } = openBench();
  committed.metadata = AFTER_DECISION;
  const guarded = await open();
  for (const [end, triedTo] of [
    [3, 4],
    [6, null],
  ] as const) {
    guarded.worker.accept(toRecords(rows(3), end - 3), end);
    await until('the block is committed', () => committed.offset === end);
    expect(parseMetadata(committed.metadata, end).triedTo).toBe(triedTo);
  }
  guarded.end();
});
