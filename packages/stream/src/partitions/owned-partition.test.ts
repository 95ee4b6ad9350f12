import { createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterEach, expect, it, vi } from 'vitest';
import type { BlockSink, Consumer } from '../ports.ts';
import { captureLogs, fakeLog, NO_WAITS } from '../test/fake-log.ts';
import { createMemoryLog, type MemoryConsumer } from '../test/memory/index.ts';
import { send } from '../test/producer-contract.ts';
import { createTokenSink, TokenStore } from '../test/token-store.ts';
import { Fenced } from './log-partition.ts';
import { OwnedPartition } from './owned-partition.ts';
import { OwnershipEnded } from './ownership.ts';
import { createStreamMetrics } from './stream-metrics.ts';

const TOPIC = 'topic';
const toAuthorizationFault = () => Object.assign(new Error('Not authorized to access group'), { retriable: false });

afterEach(() => void vi.useRealTimers());

function openOwned(faults: (() => Error)[]) {
  const commits: string[] = [];
  const { logger, lines } = captureLogs();
  const log = fakeLog({
    commit: async (offset, metadata) => {
      commits.push(`${offset} ${metadata}`);
      const fault = faults.shift();
      if (fault !== undefined) throw fault();
    },
  });
  const owned = new OwnedPartition({ log, logger, metrics: createStreamMetrics(undefined), waits: NO_WAITS });
  return { owned, commits, lines };
}

it('a commit that is rejected because another member owns the partition is not retried', async () => {
  const { owned, commits } = openOwned([() => new Fenced()]);
  await expect(owned.commit(7, 'intent')).rejects.toThrow(Fenced);
  expect(commits).toEqual(['7 intent']);
});

it('a commit without a response is retried unchanged', async () => {
  const { owned, commits } = openOwned([() => new Error('the coordinator is unavailable')]);
  await owned.commit(7, 'intent');
  expect(commits).toEqual(['7 intent', '7 intent']);
});

it('a commit is not retried after the partition is revoked', async () => {
  const { owned, commits } = openOwned([
    () => {
      owned.ownership.end();
      return new Error('the coordinator is unavailable');
    },
  ]);
  await expect(owned.commit(7, '')).rejects.toThrow(OwnershipEnded);
  expect(commits).toHaveLength(1);
});

it('a partition is blocked while brokers reject a commit permanently or for more than ten seconds', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const blockers: (string | null)[] = [];
  const record = (fault: Error) => () => {
    blockers.push(owned.blocker);
    return fault;
  };
  const temporary = new Error('The coordinator is loading');
  const afterTenSeconds = () => {
    vi.advanceTimersByTime(10_000);
    return record(temporary)();
  };
  const { owned, lines } = openOwned([
    record(temporary),
    afterTenSeconds,
    record(toAuthorizationFault()),
    record(temporary),
  ]);
  await owned.commit(7, '');
  expect(blockers).toEqual([
    null,
    null,
    'topic/0: offset 7 not committed: The coordinator is loading',
    'topic/0: offset 7 not committed: Not authorized to access group',
  ]);
  expect(owned.blocker).toBeNull();
  expect(lines[0]).toMatchObject({ level: 'error', partition: 0, reason: 'The coordinator is loading' });
  expect(lines.at(-1)).toMatchObject({ level: 'warn', msg: 'partition unblocked' });
});

it('a partition that is paused again after a retry reports its latest blocker', async () => {
  const { owned } = openOwned([]);
  for (const reason of ['first', 'second']) await owned.pauseForRetry(7, new Error(reason));
  expect(owned.blocker).toBe('topic/0: partition paused: second');
  owned.resume(7);
  expect(owned.blocker).toBeNull();
});

function openBench() {
  const log = createMemoryLog({ partitions: 1 });
  const metrics = createMetrics('test');
  const producer = log.openProducer();
  const append = async (count: number, text = 'row') => {
    for (let i = 0; i < count; i++) await send(producer, [{ topic: TOPIC, key: null, value: Buffer.from(text) }]);
  };
  const countPaused = async () =>
    /^playline_stream_stopped_partitions\{topic="topic",.*\} (\d+)$/m.exec(await metrics.text())?.[1] ?? null;
  const limits = { rowsMax: 2, bytesMax: 1_000_000, ageMaxMs: 1 };
  const options = { topics: [TOPIC], limits, metrics, waits: NO_WAITS };
  return { log, append, countPaused, options };
}

it.each(['writer', 'handler'])('a %s with rejected commits is not ready until brokers accept them', async (kind) => {
  const { log, append, options } = openBench();
  log.refuseCommits(toAuthorizationFault());
  const consumer: Consumer =
    kind === 'writer'
      ? log.openBlockConsumer({ ...options, sink: createTokenSink(new TokenStore()) })
      : log.openRecordConsumer({ topics: [TOPIC], onBatch: async () => {} });
  await append(1);
  await until('the consumer is not ready', () => !consumer.ready());
  expect([...consumer.blockers()]).toEqual([
    ['topic/0', expect.stringMatching(/^topic\/0: offset \d not committed: Not authorized to access group$/)],
  ]);
  log.refuseCommits(null);
  await until('the consumer is ready', () => consumer.ready());
  await until('all records are committed', () => log.committed(TOPIC, 0) === 1);
  await consumer.close();
});

it('a writer whose dead letters are rejected is not ready until brokers accept them', async () => {
  const { log, append, options } = openBench();
  const deadLetters = log.openProducer();
  for (let i = 0; i < 2; i++) deadLetters.failNext(toAuthorizationFault());
  const { topics, limits } = options;
  const consumer = log.openBlockConsumer({ topics, limits, sink: createTokenSink(new TokenStore()), deadLetters });
  await append(1, 'poison');
  await until('the consumer is not ready', () => !consumer.ready());
  expect([...consumer.blockers().values()]).toEqual([
    'topic/0: dead letters not acknowledged: Not authorized to access group',
  ]);
  await until('the consumer is ready', () => consumer.ready());
  await consumer.idle();
  await consumer.close();
});

function openFailingSink(store: TokenStore, failing: readonly number[]): BlockSink {
  const sink = createTokenSink(store);
  let opened = 0;
  return {
    ...sink,
    openBlock: (...args) => {
      if (failing.includes(opened++)) throw new Error('no buffer for a block');
      return sink.openBlock(...args);
    },
  };
}

async function expectAllStored(consumer: MemoryConsumer, store: TokenStore, count: number) {
  await until('all records are stored', () => store.rows.length === count);
  await until('the consumer is ready', () => consumer.ready());
  await consumer.close();
  expect(store.offsets(TOPIC)).toEqual(Array.from({ length: count }, (_, offset) => `0/${offset}`));
}

it.each([
  ['while a block is being written', [1]],
  ['while nothing is being written', [0, 1, 2]],
])('a writer that cannot add a record %s is paused, and then continues without a gap', async (_, failing) => {
  const { log, append, countPaused, options } = openBench();
  const store = new TokenStore();
  const gate = Promise.withResolvers<void>();
  store.onWrite = async (_name, phase) => (phase === 'before' ? await gate.promise : undefined);
  const consumer = log.openBlockConsumer({ ...options, sink: openFailingSink(store, failing) });
  await append(5);
  gate.resolve();
  await expectAllStored(consumer, store, 5);
  expect(await countPaused()).toBe('0');
});

it('a failing handler pauses its partition, receives the same batch again, and handles every record once', async () => {
  const { log, append, countPaused, options } = openBench();
  const seen: number[] = [];
  let failing = 3;
  const consumer = log.openRecordConsumer({
    ...options,
    batchRecordsMax: 2,
    onBatch: async (records) => {
      if (seen.length === 2 && failing-- > 0) throw new Error('a bug');
      seen.push(...records.map(({ offset }) => offset));
    },
  });
  await append(30);
  await until('all records are committed', () => log.committed(TOPIC, 0) === 30);
  expect(consumer.ready()).toBe(true);
  expect(await countPaused()).toBe('0');
  await consumer.close();
  expect(seen).toEqual(Array.from({ length: 30 }, (_, offset) => offset));
});

it('a handler that fails to return its start offset is called again', async () => {
  const { log, append, options } = openBench();
  let failing = 2;
  const consumer = log.openRecordConsumer({
    ...options,
    onAssign: async ({ committed }) => {
      if (failing-- > 0) throw new Error('the store belongs to a different log');
      return committed;
    },
    onBatch: async () => {},
  });
  await append(3);
  await until('all records are committed', () => log.committed(TOPIC, 0) === 3);
  expect(consumer.ready()).toBe(true);
  await consumer.close();
});

it('the consumer of a paused partition closes immediately and commits nothing', async () => {
  const { log, append } = openBench();
  const onBatch = async () => {
    throw new Error('a bug');
  };
  const consumer = log.openRecordConsumer({ topics: [TOPIC], onBatch });
  await append(1);
  await until('the partition is paused', () => !consumer.ready());
  const startMs = performance.now();
  await consumer.close();
  expect(performance.now() - startMs).toBeLessThan(2_000);
  expect(log.committed(TOPIC, 0)).toBe(0);
});
