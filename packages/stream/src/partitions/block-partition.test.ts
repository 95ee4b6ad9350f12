import { until } from '@playline/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type BlockName, type BlockSink, type Producer, RetryableFault, type StreamRecord } from '../ports.ts';
import { createTokenSink, TokenStore } from '../test/token-store.ts';
import type { BlockPartitionOptions } from './block-partition.ts';
import { BlockPartition } from './block-partition.ts';
import { NO_NOTE, parseMetadata, toMetadata } from './intent.ts';
import { Fenced, type LogPartition } from './log-partition.ts';
import { createStreamMetrics } from './stream-metrics.ts';

const TOPIC = 'topic';
const LONG_MS = 3_600_000;

function records(from: number, to: number): StreamRecord[] {
  return Array.from({ length: to - from }, (_, i) => ({
    topic: TOPIC,
    partition: 0,
    offset: from + i,
    timestampMs: 1_000 + from + i,
    key: null,
    value: Buffer.from(`row ${from + i}`),
    headers: {},
  }));
}

const unexpected = () => expect.fail('no record is a dead letter here');
const never = { bytesHeld: 0, send: unexpected, sendForOffset: unexpected };
const unused: Producer = { ...never, ready: async () => true, close: async () => {} };

/** A partition that records its steps in `steps`. */
function openPartition(options: {
  committed?: number;
  metadata?: string | null;
  ageMaxMs?: number;
  sink?: (store: TokenStore) => BlockSink;
  commit?: (offset: number) => Promise<void> | void;
  waits?: BlockPartitionOptions['waits'];
}) {
  const steps: string[] = [];
  const names: BlockName[] = [];
  const store = new TokenStore();
  store.onWrite = (name, moment) => {
    if (moment === 'after') return;
    names.push(name);
    steps.push(`write ${name.start}-${name.end}`);
  };
  const log: LogPartition = {
    topic: TOPIC,
    partition: 0,
    committed: options.committed ?? 0,
    metadata: options.metadata ?? null,
    commit: async (offset, metadata) => {
      await options.commit?.(offset);
      const { intent } = parseMetadata(metadata, offset);
      steps.push(`commit ${offset}${intent === null ? '' : ` naming ${intent.end}`}`);
    },
    start: 0,
    batchAt: async () => null,
    firstOffset: async () => 0,
    seek: (offset) => void steps.push(`seek ${offset}`),
    pause: () => void steps.push('pause'),
    resume: () => void steps.push('resume'),
  };
  const worker = new BlockPartition({
    log,
    sink: options.sink?.(store) ?? createTokenSink(store),
    limits: { rowsMax: 10, bytesMax: 1_000_000, ageMaxMs: options.ageMaxMs ?? LONG_MS },
    deadLetters: unused,
    sessionTimeoutMs: 10_000,
    logger: undefined,
    metrics: createStreamMetrics(undefined),
    ...(options.waits && { waits: options.waits }),
  });
  return { worker, steps, names, store };
}

const done = (worker: BlockPartition, offset: number) => until(`offset ${offset}`, () => worker.done === offset);
const bare = { mark: null, firstTimestampMs: null, basis: null };
const named = (end: number, transformVersion = 1, namedAtMs = Date.now()) =>
  toMetadata({ ...NO_NOTE, intent: { ...bare, end, namedAtMs, transformVersion } });

describe('a block partition', () => {
  const opened: BlockPartition[] = [];
  const open = (options: Parameters<typeof openPartition>[0] = {}) => {
    const partition = openPartition(options);
    opened.push(partition.worker);
    return partition;
  };
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
    for (const worker of opened.splice(0)) worker.end();
  });

  it('names a block before it writes it, and names the next in the commit that completes it', async () => {
    const { worker, steps } = open();
    worker.accept(records(0, 20), 20);
    await done(worker, 20);
    const order = [
      'commit 0 naming 10',
      'pause',
      'write 0-10',
      'commit 10 naming 20',
      'resume',
      'write 10-20',
      'commit 20',
    ];
    expect(steps.filter((step) => step !== 'pause' && step !== 'resume')).toEqual(
      order.filter((step) => step !== 'pause' && step !== 'resume'),
    );
    expect(steps).toContain('pause');
    expect(steps.indexOf('resume')).toBeGreaterThan(steps.indexOf('pause'));
  });

  it('takes a block that was named before exactly as it was named, whatever its limits say', async () => {
    const { worker, steps, names, store } = open({ committed: 5, metadata: named(40) });
    worker.accept(records(5, 25), 25);
    worker.accept(records(25, 50), 50);
    await done(worker, 50);
    expect(steps.find((step) => step !== 'pause')).toBe('write 5-40');
    expect(names[0]).toMatchObject({ start: 5, end: 40, triedBefore: true });
    expect(names[1]).toMatchObject({ start: 40, end: 50, triedBefore: false });
    expect(store.rows.map(({ offset }) => offset).sort((a, b) => a - b)).toEqual(
      records(5, 50).map(({ offset }) => offset),
    );
  });

  it('builds a named block across a gap of the log, and ends it where its name says', async () => {
    const { worker, steps } = open({ metadata: named(12) });
    worker.accept([...records(0, 5), ...records(20, 28)], 28);
    await done(worker, 12);
    expect([steps[0], worker.next]).toEqual(['write 0-12', 28]);
  });

  it('names the time of its first record, the same when another owner builds the block again', async () => {
    const first = open();
    first.worker.accept(records(0, 10), 10);
    const again = open({ metadata: named(10) });
    again.worker.accept(records(0, 10), 10);
    await until('both have written', () => first.names.length > 0 && again.names.length > 0);
    expect([first.names[0]?.firstTimestampMs, again.names[0]?.firstTimestampMs]).toEqual([1_000, 1_000]);
  });

  it('stops before a named block whose transform it does not know, and before metadata it cannot read', async () => {
    for (const metadata of [named(4, 7), '{"v":2}', 'someone else wrote this']) {
      const { worker, steps } = open({ metadata });
      expect(worker.healthy).toBe(false);
      worker.accept(records(0, 20), 20);
      expect(worker.done).toBe(0);
      expect(steps).toEqual(['pause']);
    }
  });

  it('never writes a block whose name was refused', async () => {
    const fence = () => {
      throw new Fenced('ILLEGAL_GENERATION');
    };
    const { worker, steps, store } = open({ commit: fence });
    worker.accept(records(0, 10), 10);
    await worker.drain(1_000);
    worker.accept(records(10, 30), 30);
    expect(steps).toEqual([]);
    expect(store.rows).toEqual([]);
    expect(worker.healthy).toBe(true);
  });

  it('asks again before it writes when its last answer is older than half a session', async () => {
    const frozen = open();
    let slept = false;
    const original = frozen.store.onWrite;
    frozen.store.onWrite = async (name, moment) => {
      await original(name, moment);
      if (slept) return;
      slept = true;
      // Only the monotonic clock advances, as when the wall clock is set back.
      const now = performance.now.bind(performance);
      vi.spyOn(performance, 'now').mockImplementation(() => now() + 6_000);
      throw new RetryableFault('timed out');
    };
    frozen.worker.accept(records(0, 10), 10);
    await done(frozen.worker, 10);
    const last = frozen.steps.lastIndexOf('write 0-10');
    expect(frozen.steps[last - 1]).toBe('commit 0 naming 10');
  });

  it('finishes the block that is named when it drains, and leaves the others to the next owner', async () => {
    const { worker, steps, store } = open();
    let drained: Promise<void> | null = null;
    store.onWrite = async (_name, moment) => {
      if (moment === 'before') drained ??= worker.drain(5_000);
      await new Promise((resolve) => setImmediate(resolve));
    };
    worker.accept(records(0, 25), 25);
    await until('draining', () => drained !== null);
    await drained;
    expect(steps.filter((step) => step.startsWith('commit'))).toEqual(['commit 0 naming 10', 'commit 10']);
    expect(store.rows).toHaveLength(10);
  });

  it('commits nothing after it has ended, and gives buffers back only when the write has ended', async () => {
    const { worker, steps, store } = open();
    const gate = Promise.withResolvers<void>();
    let writing = false;
    store.onWrite = async (_name, moment) => {
      writing = true;
      if (moment === 'before') await gate.promise;
    };
    worker.accept(records(0, 10), 10);
    await until('the write', () => writing);
    worker.end();
    gate.resolve();
    await worker.drain(1_000);
    expect(steps).toEqual(['commit 0 naming 10']);
    expect(store.misuse).toEqual([]);
  });

  it('stops on a fault that waiting does not end, and takes nothing more', async () => {
    const { worker, steps, store } = open();
    store.onWrite = () => {
      throw new Error('no such column');
    };
    worker.accept(records(0, 10), 10);
    await until('the stop', () => !worker.healthy);
    worker.accept(records(10, 30), 30);
    expect(steps).toEqual(['commit 0 naming 10', 'pause']);
    expect(worker.done).toBe(0);
  });

  it('tries again by itself, takes nothing meanwhile, and then reads on from where it stood', async () => {
    const none = { minMs: 0, maxMs: 0 };
    const { worker, steps, store } = open({ waits: { attempt: none, pause: none } });
    const unhealthy: boolean[] = [];
    store.onInsert = () => {
      unhealthy.push(worker.healthy);
      if (unhealthy.length === 3) worker.accept(records(10, 30), 30);
      return unhealthy.length <= 3 ? 'broken' : 'stored';
    };
    worker.accept(records(0, 10), 10);
    await done(worker, 10);
    expect(unhealthy).toEqual([true, false, false, false]);
    expect(worker.healthy).toBe(true);
    expect(steps.slice(-3)).toEqual(['commit 10', 'seek 10', 'resume']);
    expect(store.rows).toHaveLength(10);
  });

  it('ends at once when it is taken away while it stands', async () => {
    const { worker, steps, store } = open();
    store.onInsert = () => 'broken';
    worker.accept(records(0, 10), 10);
    await until('the stop', () => !worker.healthy);
    const startMs = performance.now();
    await worker.drain(60_000);
    expect(performance.now() - startMs).toBeLessThan(5_000);
    expect(steps.at(-1)).toBe('pause');
    await until('the buffers are given back', () => store.released === 1);
    expect(store.misuse).toEqual([]);
  });

  it('cuts a block that is old enough although it is not full', async () => {
    const { worker, steps } = open({ ageMaxMs: 1 });
    worker.accept(records(0, 3), 3);
    await done(worker, 3);
    expect(steps).toEqual(['commit 0 naming 3', 'write 0-3', 'commit 3']);
  });

  it('leaves records of a block that is not cut yet to the next owner', async () => {
    const { worker, steps } = open();
    worker.accept(records(0, 3), 3);
    await worker.drain(1_000);
    expect(steps).toEqual([]);
    expect(worker.done).toBe(0);
  });

  it('commits past offsets without a record', async () => {
    const { worker, steps } = open({ ageMaxMs: 1 });
    worker.accept(records(0, 1), 9);
    await done(worker, 9);
    expect(steps.at(-1)).toBe('commit 9');
  });
});
