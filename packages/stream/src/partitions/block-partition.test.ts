import { until } from '@playline/testkit';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type BlockName, type Producer, RetryableFault, type StreamRecord } from '../ports.ts';
import { fakeLog, NO_WAITS, openLines, toRecords } from '../test/fake-log.ts';
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

/** Opens a partition that records its steps and log lines. */
function open({ committed = 0, metadata, rowsMax = 10, ageMaxMs = LONG_MS, commit, ...rest }: OpenOptions = {}) {
  const steps: string[] = [];
  const names: BlockName[] = [];
  const store = new TokenStore();
  store.onWrite = (name, moment) => {
    if (moment === 'after') return;
    names.push(name);
    steps.push(`write ${name.start}-${name.end}`);
  };
  const log = fakeLog({
    committed,
    metadata: metadata ?? null,
    commit: async (offset, text) => {
      commit?.(offset);
      const { intent } = parseMetadata(text, offset);
      steps.push(`commit ${offset}${intent === null ? '' : ` naming ${intent.end}`}`);
    },
    seek: (offset) => void steps.push(`seek ${offset}`),
    pause: () => void steps.push('pause'),
    resume: () => void steps.push('resume'),
  });
  const { logger, lines } = openLines();
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

const done = (worker: BlockPartition, offset: number) => until(`offset ${offset}`, () => worker.done === offset);
const bare = { mark: null, firstTimestampMs: null, basis: null };
const named = (end: number, transformVersion = 1) =>
  toMetadata({ ...NO_NOTE, intent: { ...bare, end, namedAtMs: Date.now(), transformVersion } });

/** Delays the first write until the gate is opened. */
function holdWrite(store: TokenStore) {
  const gate = Promise.withResolvers<void>();
  const state = { writing: false, open: () => gate.resolve() };
  store.onWrite = async (_name, moment) => {
    state.writing = true;
    if (moment === 'before') await gate.promise;
  };
  return state;
}

it('a block partition commits an intent before each write, and the next intent together with the end of a block', async () => {
  const { worker, steps } = open();
  worker.accept(numbered(0, 20), 20);
  await done(worker, 20);
  const isFetching = (step: string) => step === 'pause' || step === 'resume';
  expect(steps.filter((step) => !isFetching(step))).toEqual([
    'commit 0 naming 10',
    'write 0-10',
    'commit 10 naming 20',
    'write 10-20',
    'commit 20',
  ]);
  expect(steps.filter(isFetching)).toEqual(['pause', 'resume']);
});

it('a block partition builds a named block with exactly the named offsets, whatever the limits are', async () => {
  const { worker, steps, names, store } = open({ committed: 5, metadata: named(40) });
  worker.accept(numbered(5, 25), 25);
  worker.accept(numbered(25, 50), 50);
  await done(worker, 50);
  expect(steps.find((step) => step !== 'pause')).toBe('write 5-40');
  expect(names[0]).toMatchObject({ start: 5, end: 40, triedBefore: true });
  expect(names[1]).toMatchObject({ start: 40, end: 50, triedBefore: false });
  const offsets = store.rows.map(({ offset }) => offset).sort((a, b) => a - b);
  expect(offsets).toEqual(numbered(5, 50).map(({ offset }) => offset));
});

it('a block partition ends a named block at its named end, even in a gap of the log', async () => {
  const { worker, steps } = open({ metadata: named(12) });
  worker.accept([...numbered(0, 5), ...numbered(20, 28)], 28);
  await done(worker, 12);
  expect([steps[0], worker.next]).toEqual(['write 0-12', 28]);
});

it('the name of a block contains the time of its first record, even when another owner rebuilds the block', async () => {
  const [first, again] = [open(), open({ metadata: named(10) })];
  for (const { worker } of [first, again]) worker.accept(numbered(0, 10), 10);
  await until('both partitions have written', () => first.names.length > 0 && again.names.length > 0);
  expect([first.names[0]?.firstTimestampMs, again.names[0]?.firstTimestampMs]).toEqual([1_000, 1_000]);
});

it.each([
  ['an unknown transform', named(4, 7)],
  ['a later format', '{"v":2}'],
  ['other metadata', 'not JSON'],
])('a block partition pauses at a commit with %s', (_, metadata) => {
  const { worker, steps } = open({ metadata });
  expect(worker.healthy).toBe(false);
  worker.accept(numbered(0, 20), 20);
  expect(worker.done).toBe(0);
  expect(steps).toEqual(['pause']);
});

it('a block partition never writes a block whose intent was refused', async () => {
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

it('a block partition recommits an intent before a write when the last commit is older than half a session timeout', async () => {
  const { worker, store, steps } = open();
  const original = store.onWrite;
  let isFrozen = false;
  store.onWrite = async (name, moment) => {
    await original(name, moment);
    if (isFrozen) return;
    isFrozen = true;
    // Advances only the monotonic clock, as when the wall clock is set back.
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 6_000);
    throw new RetryableFault('timed out');
  };
  worker.accept(numbered(0, 10), 10);
  await done(worker, 10);
  expect(steps[steps.lastIndexOf('write 0-10') - 1]).toBe('commit 0 naming 10');
});

it('a drained block partition finishes its named block and leaves other blocks to the next owner', async () => {
  const { worker, steps, store } = open();
  let drained: Promise<void> | null = null;
  store.onWrite = async (_name, moment) => {
    if (moment === 'before') drained ??= worker.drain(5_000);
    await new Promise((resolve) => setImmediate(resolve));
  };
  worker.accept(numbered(0, 25), 25);
  await until('draining', () => drained !== null);
  await drained;
  expect(steps.filter((step) => step.startsWith('commit'))).toEqual(['commit 0 naming 10', 'commit 10']);
  expect(store.rows).toHaveLength(10);
});

it('a drained block partition leaves an incomplete block to the next owner', async () => {
  const { worker, steps } = open();
  worker.accept(numbered(0, 3), 3);
  await worker.drain(1_000);
  expect(steps).toEqual([]);
  expect(worker.done).toBe(0);
});

it('a block partition commits nothing after its end, and releases buffers only after their write has ended', async () => {
  const { worker, steps, store } = open();
  const write = holdWrite(store);
  worker.accept(numbered(0, 10), 10);
  await until('the write', () => write.writing);
  worker.end();
  write.open();
  await worker.drain(1_000);
  expect(steps).toEqual(['commit 0 naming 10']);
  expect(store.misuse).toEqual([]);
});

it('a block partition pauses on a permanent fault, retries by itself, and continues where it paused', async () => {
  const { worker, steps, store } = open({ waits: NO_WAITS });
  const healthy: boolean[] = [];
  store.onInsert = () => {
    healthy.push(worker.healthy);
    if (healthy.length === 3) worker.accept(numbered(10, 30), 30);
    return healthy.length <= 3 ? 'broken' : 'stored';
  };
  worker.accept(numbered(0, 10), 10);
  await done(worker, 10);
  expect(healthy).toEqual([true, false, false, false]);
  expect(worker.healthy).toBe(true);
  expect(steps.slice(-3)).toEqual(['commit 10', 'seek 10', 'resume']);
  expect(store.rows).toHaveLength(10);
});

it('a paused block partition drains immediately and releases its buffers once', async () => {
  const { worker, steps, store } = open();
  store.onInsert = () => 'broken';
  worker.accept(numbered(0, 10), 10);
  await until('the pause', () => !worker.healthy);
  const startMs = performance.now();
  await worker.drain(60_000);
  expect(performance.now() - startMs).toBeLessThan(5_000);
  expect(steps.at(-1)).toBe('pause');
  await until('the buffers are released', () => store.released === 1);
  expect(store.misuse).toEqual([]);
});

it('a block partition closes an old block that is not full, and commits past offsets without a record', async () => {
  const { worker, steps } = open({ ageMaxMs: 1 });
  worker.accept(numbered(0, 3), 9);
  await done(worker, 9);
  expect(steps).toEqual(['commit 0 naming 9', 'write 0-9', 'commit 9']);
});

it('a block partition logs one line for all dead letters in a block, without record content', async () => {
  const { worker, lines } = open({ rowsMax: 4 });
  worker.accept(toRecords(['row', 'poison of a person', 'refuse this', 'row'], 7), 11);
  await done(worker, 11);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ level: 'warn', topic: 'topic', partition: 0, offset: 8, count: 2 });
  expect(lines[0]).toMatchObject({ reason: 'TypeError', msg: 'records sent to dead letters' });
  expect(JSON.stringify(lines)).not.toContain('person');
});

it('a block partition logs a write that takes more than five seconds once, and reports its start', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  const { worker, lines, store } = open({ rowsMax: 2 });
  const write = holdWrite(store);
  const startedMs = performance.now();
  expect(worker.writingSinceMs).toBeNull();
  worker.accept(numbered(0, 2), 2);
  await until('the write', () => write.writing);
  vi.advanceTimersByTime(4_999);
  expect(lines).toEqual([]);
  vi.advanceTimersByTime(20_000);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ level: 'warn', topic: 'topic', partition: 0, start: 0, rows: 2 });
  expect(worker.writingSinceMs).toBe(startedMs);
  write.open();
  await done(worker, 2);
  expect(worker.writingSinceMs).toBeNull();
  worker.accept(numbered(2, 4), 4);
  await done(worker, 4);
  vi.advanceTimersByTime(20_000);
  expect(lines).toHaveLength(1);
});

it.each([
  [null, 'warn', 'block write failed, retrying'],
  [60, 'warn', 'block write failed, retrying'],
  [10, 'error', 'retention deletes unwritten records soon'],
] as const)(
  'failed writes with %s hours of retention left are logged in one line at level %s',
  async (hours, level, msg) => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const retentionMsOf = () => (hours === null ? null : hours * 3_600_000);
    const { worker, lines, store } = open({ rowsMax: 2, waits: NO_WAITS, retentionMsOf });
    let refusals = 0;
    store.onInsert = () => (refusals++ < 20 ? 'refused' : 'stored');
    const records = numbered(0, 2).map((record) => ({ ...record, timestampMs: Date.now() }));
    worker.accept(records, 2);
    await done(worker, 2);
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
