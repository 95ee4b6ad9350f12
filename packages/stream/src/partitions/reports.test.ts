import { createLogger, createMetrics, type Logger } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { RetryableFault, type StreamRecord } from '../ports.ts';
import { createMemoryLog } from '../test/memory/index.ts';
import { createTokenSink, TokenStore } from '../test/token-store.ts';
import type { BlockPartitionOptions } from './block-partition.ts';
import { BlockPartition } from './block-partition.ts';
import type { LogPartition } from './log-partition.ts';
import { RecordPartition } from './record-partition.ts';
import { createStreamMetrics } from './stream-metrics.ts';

const log: LogPartition = {
  topic: 'topic',
  partition: 2,
  committed: 7,
  metadata: null,
  start: 0,
  batchAt: async () => null,
  firstOffset: async () => 0,
  commit: async () => {},
  seek: () => {},
  pause: () => {},
  resume: () => {},
};

/** A logger whose lines can be read. */
function openLines(): { logger: Logger; lines: Record<string, unknown>[]; text: () => string } {
  const written: string[] = [];
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => {
    written.push(line);
    lines.push(JSON.parse(line));
  };
  return { logger: createLogger({ service: 'test', level: 'warn' }, { write }), lines, text: () => written.join('') };
}

const toRecords = (texts: readonly string[]): StreamRecord[] =>
  texts.map((text, i) => ({
    topic: 'topic',
    partition: 2,
    offset: 7 + i,
    timestampMs: 1,
    key: null,
    headers: {},
    value: Buffer.from(text),
  }));

function openBlockPartition(
  store: TokenStore,
  logger: Logger,
  { rowsMax, ...over }: { rowsMax: number } & Pick<BlockPartitionOptions, 'waits' | 'retentionMsOf'>,
) {
  return new BlockPartition({
    ...over,
    log,
    logger,
    sink: createTokenSink(store),
    deadLetters: createMemoryLog().openProducer(),
    limits: { rowsMax, bytesMax: 1_000_000, ageMaxMs: 3_600_000 },
    sessionTimeoutMs: 3_600_000,
    metrics: createStreamMetrics(undefined),
  });
}

describe('what a partition tells', () => {
  afterEach(() => void vi.useRealTimers());

  it('is one line for all dead letters of a block, without any content of the records', async () => {
    const { logger, lines, text } = openLines();
    const worker = openBlockPartition(new TokenStore(), logger, { rowsMax: 4 });
    worker.accept(toRecords(['row', 'poison of somebody', 'refuse this', 'row']), 11);
    await until('the block', () => worker.done === 11);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: 'warn', topic: 'topic', partition: 2, offset: 8, count: 2 });
    expect(lines[0]).toMatchObject({ reason: 'TypeError' });
    expect(text()).not.toContain('somebody');
    worker.end();
  });

  it('is one line for a write that takes more than five seconds, and since when it runs', async () => {
    const { logger, lines } = openLines();
    const store = new TokenStore();
    const gate = Promise.withResolvers<void>();
    let writing = false;
    store.onWrite = async (_name, moment) => {
      writing = true;
      if (moment === 'before') await gate.promise;
    };
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    const startedMs = performance.now();
    const worker = openBlockPartition(store, logger, { rowsMax: 2 });
    expect(worker.writingSinceMs).toBeNull();
    worker.accept(toRecords(['row', 'row']), 9);
    await until('the write', () => writing);
    expect(worker.writingSinceMs).toBe(startedMs);
    vi.advanceTimersByTime(4_999);
    expect(lines).toEqual([]);
    vi.advanceTimersByTime(20_000);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: 'warn', topic: 'topic', partition: 2, start: 7, rows: 2 });
    expect(worker.writingSinceMs).toBe(startedMs);
    gate.resolve();
    await until('the block', () => worker.done === 9);
    expect(worker.writingSinceMs).toBeNull();
    worker.accept(toRecords(['', '', 'row', 'row']), 11);
    await until('a quick block', () => worker.done === 11);
    vi.advanceTimersByTime(20_000);
    expect(lines).toHaveLength(1);
    worker.end();
  });

  it('is one line for many attempts in a row, with what failed and for how long the log keeps what waits', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    for (const [retentionHours, level, msg] of [
      [null, 'warn', 'a block is tried again'],
      [60, 'warn', 'a block is tried again'],
      [10, 'error', 'retention will take records that are not written'],
    ] as const) {
      const { logger, lines } = openLines();
      const store = new TokenStore();
      let refusals = 0;
      store.onInsert = () => (refusals++ < 20 ? 'refused' : 'stored');
      const none = { minMs: 0, maxMs: 0 };
      const worker = openBlockPartition(store, logger, {
        rowsMax: 2,
        waits: { attempt: none, pause: none },
        retentionMsOf: () => (retentionHours === null ? null : retentionHours * 3_600_000),
      });
      const records = toRecords(['row', 'row']);
      worker.accept(
        records.map((record) => ({ ...record, timestampMs: Date.now() })),
        9,
      );
      await until('the block', () => worker.done === 9);
      expect(lines).toHaveLength(1);
      expect(lines[0]).toMatchObject({ level, msg, topic: 'topic', partition: 2, start: 7, attempts: 1 });
      expect(lines[0]).toMatchObject({ hoursLeft: retentionHours, reason: 'busy' });
      worker.end();
    }
  });

  it('is why it cannot start yet, once for each reason, while the counter counts every attempt', async () => {
    const { logger, lines } = openLines();
    const metrics = createMetrics('test');
    const reasons = ['no epoch', 'no epoch', 'no connection'];
    const onAssign = async ({ committed }: { committed: number }) => {
      const reason = reasons.shift();
      if (reason !== undefined) throw new RetryableFault(reason);
      return committed;
    };
    const handler = { onAssign, onBatch: async () => {} };
    const worker = new RecordPartition({ log, handler, logger, metrics: createStreamMetrics(metrics) });
    // Nothing is taken before it is known where to start.
    await until('the start', () => {
      worker.accept(toRecords(['row']), 8);
      return worker.done === 8;
    });
    expect(lines.map(({ level, error }) => [level, (error as Error).message])).toEqual([
      ['warn', 'no epoch'],
      ['warn', 'no connection'],
    ]);
    expect(lines[0]).toMatchObject({ topic: 'topic', partition: 2 });
    expect(await metrics.text()).toContain(
      'playline_stream_retries_total{topic="topic",step="assign",service="test"} 3',
    );
    worker.end();
  });
});
