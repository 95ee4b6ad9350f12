import { createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { describe, expect, it } from 'vitest';
import type { BlockSink } from '../ports.ts';
import { createMemoryLog, type MemoryConsumer } from '../test/memory/index.ts';
import { send } from '../test/producer-contract.ts';
import { createTokenSink, TokenStore } from '../test/token-store.ts';

const TOPIC = 'topic';
const limits = { rowsMax: 2, bytesMax: 1_000_000, ageMaxMs: 1 };
const none = { minMs: 0, maxMs: 0 };
const waits = { attempt: none, pause: none };

function openBench() {
  const log = createMemoryLog({ partitions: 1 });
  const metrics = createMetrics('test');
  const producer = log.openProducer();
  const append = async (count: number) => {
    for (let i = 0; i < count; i++) await send(producer, [{ topic: TOPIC, key: null, value: Buffer.from(`row ${i}`) }]);
  };
  /** How many partitions stand; null before any has. */
  const stopped = async () =>
    /^playline_stream_stopped_partitions\{topic="topic",.*\} (\d+)$/m.exec(await metrics.text())?.[1] ?? null;
  return { log, metrics, append, stopped };
}

/** A sink that refuses to open its blocks of these numbers, counted from the first. */
function openFailingSink(store: TokenStore, failing: readonly number[]): BlockSink {
  const sink = createTokenSink(store);
  let opened = 0;
  return {
    ...sink,
    openBlock: (...given) => {
      if (failing.includes(opened++)) throw new Error('no room for a block');
      return sink.openBlock(...given);
    },
  };
}

async function readAll(consumer: MemoryConsumer, store: TokenStore, count: number) {
  await until('all is stored', () => store.rows.length === count);
  await until('ready', () => consumer.ready());
  await consumer.close();
  expect(store.offsets(TOPIC)).toEqual(Array.from({ length: count }, (_, offset) => `0/${offset}`));
}

describe('a writer that cannot take a record', () => {
  it('stands, is counted once, and goes on when the block that is being written is stored', async () => {
    const { log, metrics, append, stopped } = openBench();
    const store = new TokenStore();
    const gate = Promise.withResolvers<void>();
    store.onWrite = async (_name, moment) => (moment === 'before' ? await gate.promise : undefined);
    const sink = openFailingSink(store, [1]);
    const consumer = log.openBlockConsumer({ topics: [TOPIC], sink, limits, metrics, waits });
    await append(5);
    gate.resolve();
    await readAll(consumer, store, 5);
    expect(await stopped()).toBe('0');
  });

  it('stands, and goes on by itself when nothing is being written', async () => {
    const { log, metrics, append, stopped } = openBench();
    const store = new TokenStore();
    const sink = openFailingSink(store, [0, 1, 2]);
    const consumer = log.openBlockConsumer({ topics: [TOPIC], sink, limits, metrics, waits });
    await append(5);
    await readAll(consumer, store, 5);
    expect(await stopped()).toBe('0');
  });
});

describe('a handler of records that fails for good', () => {
  it('stands, is counted once, and gets the same batch again by itself until it is mended; then all is handled once', async () => {
    const { log, metrics, append, stopped } = openBench();
    const seen: number[] = [];
    let broken = 3;
    const consumer = log.openRecordConsumer({
      topics: [TOPIC],
      batchRecordsMax: 2,
      metrics,
      waits,
      onBatch: async (records) => {
        if (seen.length === 2 && broken-- > 0) throw new Error('a bug');
        seen.push(...records.map(({ offset }) => offset));
      },
    });
    await append(30);
    await until('all is committed', () => log.committed(TOPIC, 0) === 30);
    expect(consumer.ready()).toBe(true);
    expect(await stopped()).toBe('0');
    await consumer.close();
    expect(seen).toEqual(Array.from({ length: 30 }, (_, offset) => offset));
  });

  it('is asked again where to start, too', async () => {
    const { log, append } = openBench();
    let broken = 2;
    const consumer = log.openRecordConsumer({
      topics: [TOPIC],
      waits,
      onAssign: async ({ committed }) => {
        if (broken-- > 0) throw new Error('the store is of another log');
        return committed;
      },
      onBatch: async () => {},
    });
    await append(3);
    await until('all is committed', () => log.committed(TOPIC, 0) === 3);
    expect(consumer.ready()).toBe(true);
    await consumer.close();
  });

  it('ends at once when its partition is taken away while it stands', async () => {
    const { log, append } = openBench();
    const consumer = log.openRecordConsumer({
      topics: [TOPIC],
      onBatch: async () => {
        throw new Error('a bug');
      },
    });
    await append(1);
    await until('it stands', () => !consumer.ready());
    const startMs = performance.now();
    await consumer.close();
    expect(performance.now() - startMs).toBeLessThan(2_000);
    expect(log.committed(TOPIC, 0)).toBe(0);
  });
});
