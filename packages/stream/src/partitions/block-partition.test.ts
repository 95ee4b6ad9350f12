import { until } from '@playline/testkit';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type BlockName, type Producer, RetryableFault, type StreamRecord } from '../ports.ts';
import { captureLogs, fakeLog, NO_WAITS, toRecords } from '../test/fake-log.ts';
import { createMemoryLog } from '../test/memory/index.ts';
import { createTokenSink, TokenStore } from '../test/token-store.ts';
import { BlockPartition, type BlockPartitionOptions } from './block-partition.ts';
import { NO_NOTE, parseMetadata, toMetadata } from './intent.ts';
import { Fenced } from './log-partition.ts';
import { createStreamMetrics } from './stream-metrics.ts';

const LONG_MS = 3_600_000;
const numbered = (from: number, to: number): StreamRecord[] =>
  toRecords(
    Array.from({ length: to - from }, (_, i) => `row ${from + i}`),
    from,
  );

const opened: BlockPartition[] = [];
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  for (const worker of opened.splice(0)) worker.end();
});

interface OpenOptions
  extends Pick<BlockPartitionOptions, 'waits'>,
    Partial<Pick<BlockPartitionOptions, 'retentionMsOf'>> {
  committed?: number;
  metadata?: string;
  rowsMax?: number;
  ageMaxMs?: number;
  deadLetters?: Producer;
  commit?: (offset: number) => void;
}

function open({ committed = 0, metadata, rowsMax = 10, ageMaxMs = LONG_MS, commit, ...rest }: OpenOptions = {}) {
  const steps: string[] = [];
  const names: BlockName[] = [];
  const store = new TokenStore();
  store.onWrite = (name, phase) => {
    if (phase === 'after') return;
    names.push(name);
    steps.push(`write ${name.start}-${name.end}`);
  };
  const log = fakeLog({
    committed,
    metadata: metadata ?? null,
    commit: async (offset, text) => {
      commit?.(offset);
      const { intent } = parseMetadata(text, offset);
      steps.push(`commit ${offset}${intent === null ? '' : ` with intent ${intent.end}`}`);
    },
    seek: (offset) => void steps.push(`seek ${offset}`),
    pause: () => void steps.push('pause'),
    resume: () => void steps.push('resume'),
  });
  const { logger, lines } = captureLogs();
  const worker = new BlockPartition({
    log,
    sink: createTokenSink(store),
    limits: { rowsMax, bytesMax: 1_000_000, ageMaxMs },
    deadLetters: createMemoryLog().openProducer(),
    sessionTimeoutMs: 10_000,
    logger,
    metrics: createStreamMetrics(undefined),
    ...rest,
  });
  opened.push(worker);
  return { worker, steps, names, store, lines };
}

const awaitDone = (worker: BlockPartition, offset: number) =>
  until(`offset ${offset} is reached`, () => worker.done === offset);
const emptyIntent = { mark: null, firstTimestampMs: null, basis: null };
const toIntentMetadata = (end: number, transformVersion = 1) =>
  toMetadata({ ...NO_NOTE, intent: { ...emptyIntent, end, intentAtMs: Date.now(), transformVersion } });

function delayWrite(store: TokenStore) {
  const gate = Promise.withResolvers<void>();
  const state = { writing: false, open: () => gate.resolve() };
  store.onWrite = async (_name, phase) => {
    state.writing = true;
    if (phase === 'before') await gate.promise;
  };
  return state;
}

it('a block partition commits an intent before each write, and the next intent with the end of a block', async () => {
  const { worker, steps } = open();
  worker.accept(numbered(0, 20), 20);
  await awaitDone(worker, 20);
  const isFetching = (step: string) => step === 'pause' || step === 'resume';
  expect(steps.filter((step) => !isFetching(step))).toEqual([
    'commit 0 with intent 10',
    'write 0-10',
    'commit 10 with intent 20',
    'write 10-20',
    'commit 20',
  ]);
  expect(steps.filter(isFetching)).toEqual(['pause', 'resume']);
});

it('a block partition builds exactly the block in a committed intent, regardless of its limits', async () => {
  const { worker, steps, names, store } = open({ committed: 5, metadata: toIntentMetadata(40) });
  worker.accept(numbered(5, 25), 25);
  worker.accept(numbered(25, 50), 50);
  await awaitDone(worker, 50);
  expect(steps.find((step) => step !== 'pause')).toBe('write 5-40');
  expect(names[0]).toMatchObject({ start: 5, end: 40, triedBefore: true });
  expect(names[1]).toMatchObject({ start: 40, end: 50, triedBefore: false });
  const offsets = store.rows.map(({ offset }) => offset).sort((a, b) => a - b);
  expect(offsets).toEqual(numbered(5, 50).map(({ offset }) => offset));
});

it('a block partition ends a block at the end in its intent, even in a gap of the log', async () => {
  const { worker, steps } = open({ metadata: toIntentMetadata(12) });
  worker.accept([...numbered(0, 5), ...numbered(20, 28)], 28);
  await awaitDone(worker, 12);
  expect([steps[0], worker.next]).toEqual(['write 0-12', 28]);
});

it('a block has the time of its first record, even if another owner rebuilds the block', async () => {
  const [first, rebuilt] = [open(), open({ metadata: toIntentMetadata(10) })];
  for (const { worker } of [first, rebuilt]) worker.accept(numbered(0, 10), 10);
  await until('both partitions have written', () => first.names.length > 0 && rebuilt.names.length > 0);
  expect([first.names[0]?.firstTimestampMs, rebuilt.names[0]?.firstTimestampMs]).toEqual([1_000, 1_000]);
});

it.each([
  ['an unknown transform version', toIntentMetadata(4, 7)],
  ['a later format', '{"v":2}'],
  ['other metadata', 'not JSON'],
])('a block partition is paused if its commit contains %s', (_, metadata) => {
  const { worker, steps } = open({ metadata });
  expect(worker.healthy).toBe(false);
  worker.accept(numbered(0, 20), 20);
  expect(worker.done).toBe(0);
  expect(steps).toEqual(['pause']);
});

it('a block partition does not write a block whose intent was rejected', async () => {
  const fence = () => {
    throw new Fenced('ILLEGAL_GENERATION');
  };
  const { worker, steps, store } = open({ commit: fence });
  worker.accept(numbered(0, 10), 10);
  await worker.drain(1_000);
  worker.accept(numbered(10, 30), 30);
  expect(steps).toEqual([]);
  expect(store.rows).toEqual([]);
  expect(worker.healthy).toBe(true);
});

it('a block partition recommits an intent that is older than half a session timeout before a write', async () => {
  const { worker, store, steps } = open();
  const original = store.onWrite;
  let isSuspended = false;
  store.onWrite = async (name, phase) => {
    await original(name, phase);
    if (isSuspended) return;
    isSuspended = true;
    // Advances only the monotonic clock, as if the system clock had been set back.
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 6_000);
    throw new RetryableFault('timed out');
  };
  worker.accept(numbered(0, 10), 10);
  await awaitDone(worker, 10);
  expect(steps[steps.lastIndexOf('write 0-10') - 1]).toBe('commit 0 with intent 10');
});

it('a draining block partition finishes the block in its intent and leaves others to the next owner', async () => {
  const { worker, steps, store } = open();
  let drained: Promise<void> | null = null;
  store.onWrite = async (_name, phase) => {
    if (phase === 'before') drained ??= worker.drain(5_000);
    await new Promise((resolve) => setImmediate(resolve));
  };
  worker.accept(numbered(0, 25), 25);
  await until('draining has started', () => drained !== null);
  await drained;
  expect(steps.filter((step) => step.startsWith('commit'))).toEqual(['commit 0 with intent 10', 'commit 10']);
  expect(store.rows).toHaveLength(10);
});

it('a draining block partition leaves an incomplete block to the next owner', async () => {
  const { worker, steps } = open();
  worker.accept(numbered(0, 3), 3);
  await worker.drain(1_000);
  expect(steps).toEqual([]);
  expect(worker.done).toBe(0);
});

it('an ended block partition commits nothing, and releases buffers only after their write has ended', async () => {
  const { worker, steps, store } = open();
  const write = delayWrite(store);
  worker.accept(numbered(0, 10), 10);
  await until('the write has started', () => write.writing);
  worker.end();
  write.open();
  await worker.drain(1_000);
  expect(steps).toEqual(['commit 0 with intent 10']);
  expect(store.misuse).toEqual([]);
});

it('a block partition is paused after a permanent fault, retries, and continues at the same offset', async () => {
  const { worker, steps, store } = open({ waits: NO_WAITS });
  const healthy: boolean[] = [];
  store.onInsert = () => {
    healthy.push(worker.healthy);
    if (healthy.length === 3) worker.accept(numbered(10, 30), 30);
    return healthy.length <= 3 ? 'broken' : 'stored';
  };
  worker.accept(numbered(0, 10), 10);
  await awaitDone(worker, 10);
  expect(healthy).toEqual([true, false, false, false]);
  expect(worker.healthy).toBe(true);
  expect(steps.slice(-3)).toEqual(['commit 10', 'seek 10', 'resume']);
  expect(store.rows).toHaveLength(10);
});

it('a paused block partition drains immediately and releases its buffers once', async () => {
  const { worker, steps, store } = open();
  store.onInsert = () => 'broken';
  worker.accept(numbered(0, 10), 10);
  await until('the partition is paused', () => !worker.healthy);
  const startMs = performance.now();
  await worker.drain(60_000);
  expect(performance.now() - startMs).toBeLessThan(5_000);
  expect(steps.at(-1)).toBe('pause');
  await until('the buffers are released', () => store.released === 1);
  expect(store.misuse).toEqual([]);
});

it('a block partition closes a block at its maximum age and commits past offsets without records', async () => {
  const { worker, steps } = open({ ageMaxMs: 1 });
  worker.accept(numbered(0, 3), 9);
  await awaitDone(worker, 9);
  expect(steps).toEqual(['commit 0 with intent 9', 'write 0-9', 'commit 9']);
});

it('a block partition logs one line for all dead letters in a block, without record content', async () => {
  const { worker, lines } = open({ rowsMax: 4 });
  worker.accept(toRecords(['row', 'poison of a person', 'refuse this', 'row'], 7), 11);
  await awaitDone(worker, 11);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ level: 'warn', topic: 'topic', partition: 0, offset: 8, count: 2 });
  expect(lines[0]).toMatchObject({ reason: 'TypeError', msg: 'records published as dead letters' });
  expect(JSON.stringify(lines)).not.toContain('person');
});

it('a block partition logs a write of more than five seconds once and reports when it started', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  const { worker, lines, store } = open({ rowsMax: 2 });
  const write = delayWrite(store);
  const startedMs = performance.now();
  expect(worker.writingSinceMs).toBeNull();
  worker.accept(numbered(0, 2), 2);
  await until('the write has started', () => write.writing);
  vi.advanceTimersByTime(4_999);
  expect(lines).toEqual([]);
  vi.advanceTimersByTime(20_000);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ level: 'warn', topic: 'topic', partition: 0, start: 0, rows: 2 });
  expect(worker.writingSinceMs).toBe(startedMs);
  write.open();
  await awaitDone(worker, 2);
  expect(worker.writingSinceMs).toBeNull();
  worker.accept(numbered(2, 4), 4);
  await awaitDone(worker, 4);
  vi.advanceTimersByTime(20_000);
  expect(lines).toHaveLength(1);
});

it.each([
  [null, 'warn', 'cannot write block; retrying'],
  [60, 'warn', 'cannot write block; retrying'],
  [10, 'error', 'retention will soon delete unwritten records'],
] as const)(
  'repeated write failures with %s hours of retention left are logged once at level %s',
  async (hours, level, msg) => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const retentionMsOf = () => (hours === null ? null : hours * 3_600_000);
    const { worker, lines, store } = open({ rowsMax: 2, waits: NO_WAITS, retentionMsOf });
    let attempts = 0;
    store.onInsert = () => (attempts++ < 20 ? 'refused' : 'stored');
    const records = numbered(0, 2).map((record) => ({ ...record, timestampMs: Date.now() }));
    worker.accept(records, 2);
    await awaitDone(worker, 2);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      level,
      msg,
      partition: 0,
      start: 0,
      attempts: 1,
      hoursLeft: hours,
      reason: 'busy',
    });
  },
);
