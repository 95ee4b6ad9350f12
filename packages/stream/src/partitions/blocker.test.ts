import { createLogger } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Consumer } from '../ports.ts';
import { createMemoryLog } from '../test/memory/index.ts';
import { send } from '../test/producer-contract.ts';
import { createTokenSink, TokenStore } from '../test/token-store.ts';

const TOPIC = 'topic';

function openBench() {
  const log = createMemoryLog({ partitions: 1 });
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  const logger = createLogger({ service: 'test', level: 'warn' }, { write });
  const producer = log.openProducer();
  const append = (text: string) => send(producer, [{ topic: TOPIC, key: null, value: Buffer.from(text) }]);
  const store = new TokenStore();
  const limits = { rowsMax: 1, bytesMax: 1_000, ageMaxMs: 1 };
  const openers: Record<string, () => Consumer> = {
    writer: () => log.openBlockConsumer({ topics: [TOPIC], sink: createTokenSink(store), limits, logger }),
    handler: () => log.openRecordConsumer({ topics: [TOPIC], onBatch: async () => {}, logger }),
  };
  return { log, lines, append, openers };
}

/** As kafkajs tells it: no waiting mends this. */
const notGranted = () => Object.assign(new Error('Not authorized to access group'), { retriable: false });
const passing = () => Object.assign(new Error('The coordinator is loading'), { retriable: true });

describe.each(['writer', 'handler'])('a %s whose commits are refused', (kind) => {
  afterEach(() => void vi.useRealTimers());

  it('is not ready, logs the reason once, and goes on by itself when they are accepted again', async () => {
    const { log, lines, append, openers } = openBench();
    log.refuseCommits(notGranted());
    const consumer = openers[kind]!();
    await append('one');
    await until('not ready', () => !consumer.ready());
    const [[at, sentence] = []] = [...consumer.blockers()];
    expect(at).toBe('topic/0');
    expect(sentence).toMatch(/^topic\/0: offset \d is not committed: Not authorized to access group$/);
    expect(lines.filter(({ level }) => level === 'error')).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      topic: TOPIC,
      partition: 0,
      reason: 'Not authorized to access group',
    });
    log.refuseCommits(null);
    await until('ready', () => consumer.ready());
    await until('all is committed', () => log.committed(TOPIC, 0) === 1);
    expect(consumer.blockers().size).toBe(0);
    await consumer.close();
  });

  it('stays ready during a short fault, and not when it lasts longer than a broker needs to start', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { log, lines, append, openers } = openBench();
    log.refuseCommits(passing());
    const consumer = openers[kind]!();
    await append('one');
    await until('a refusal', () => lines.length > 0);
    expect(consumer.ready()).toBe(true);
    vi.advanceTimersByTime(10_000);
    await until('not ready', () => !consumer.ready());
    log.refuseCommits(null);
    await until('ready', () => consumer.ready());
    await consumer.close();
  });
});

describe('a writer whose dead letters are refused', () => {
  it('is not ready and says why, until they are accepted', async () => {
    const { log, append } = openBench();
    const deadLetters = log.openProducer();
    deadLetters.failNext(notGranted());
    deadLetters.failNext(notGranted());
    const consumer = log.openBlockConsumer({
      topics: [TOPIC],
      sink: createTokenSink(new TokenStore()),
      deadLetters,
      limits: { rowsMax: 1, bytesMax: 1_000, ageMaxMs: 1 },
    });
    await append('poison');
    await until('not ready', () => !consumer.ready());
    expect([...consumer.blockers().values()]).toEqual([
      'topic/0: dead letters are not acknowledged: Not authorized to access group',
    ]);
    await until('ready', () => consumer.ready());
    await consumer.idle();
    await consumer.close();
  });
});

describe('a partition that has stopped', () => {
  it('gives the reason as a hindrance of the consumer', async () => {
    const { log, append } = openBench();
    const store = new TokenStore();
    store.onInsert = () => 'broken';
    const limits = { rowsMax: 1, bytesMax: 1_000, ageMaxMs: 1 };
    const consumer = log.openBlockConsumer({ topics: [TOPIC], sink: createTokenSink(store), limits });
    await append('one');
    await until('not ready', () => !consumer.ready());
    expect([...consumer.blockers().values()]).toEqual(['topic/0: the partition has stopped: no such column']);
    await consumer.close();
  });
});
