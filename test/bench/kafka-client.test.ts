import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { openProducer } from '@playline/stream/kafka';
import { bareEnvironment, TEST_PARTITIONS, testStores, until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from './free-port.ts';
import { openService } from './processes.ts';

const WARNING = 'TimeoutNegativeWarning';
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const tag = `test-${randomBytes(4).toString('hex')}`;
const topicPrefix = `${tag}.`;
const topic = `${topicPrefix}audience.identity-links.v1`;
const { kafka, registry, redis, clickhouse } = testStores();
const target = { brokers: kafka, registry, prefix: topicPrefix, partitions: TEST_PARTITIONS };
const environment = {
  LOG_LEVEL: 'error',
  KAFKA_BROKERS: kafka.join(),
  SCHEMA_REGISTRY_URL: registry,
  REDIS_URL: redis,
  CLICKHOUSE_URL: clickhouse.url,
  CLICKHOUSE_USER: clickhouse.user,
  CLICKHOUSE_PASSWORD: clickhouse.password,
  TOPIC_PREFIX: topicPrefix,
  CONSUMER_GROUP: tag,
  IDENTITY_PEPPER: '05'.repeat(32),
};

beforeAll(async () => {
  await applyTopics(target);
  const producer = await openProducer({ brokers: kafka, clientId: tag, topics: [topic] });
  await producer.sendForOffset({ topic, key: Buffer.from(tag), value: Buffer.from('one') });
  await producer.close();
});
afterAll(() => dropTopics(target));

/** Everything that a process of the bench writes to standard error. Node prints each warning once per process. */
async function outputOf(args: string[], settings: Record<string, string> = {}): Promise<string> {
  const env = { ...bareEnvironment(), KAFKAJS_NO_PARTITIONER_WARNING: '1', ...environment, ...settings };
  const child: ChildProcess = spawn(process.execPath, args, {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let output = '';
  child.stderr!.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  const [code] = await once(child, 'close');
  expect(code, output).toBe(0);
  return output;
}

describe('Node prints no warning about a timer with a negative time,', () => {
  it('not for the client that reads the end of a topic', async () => {
    const ask = `
      import { readEnd } from './test/bench/topic-end.ts';
      const stores = { kafka: ${JSON.stringify(kafka)} };
      // Of a topic that was made just now every partition may not have a leader yet: it was asked all the same.
      await readEnd({ stores }, '${topic}').catch(() => {});`;
    expect(await outputOf(['--input-type=module', '--eval', ask])).not.toContain(WARNING);
  });

  it.each(['consume', 'link'])('not for the floor %s', async (name) => {
    const settings = { EVENTS: '1', BENCH_TOPIC: topic, BENCH_KEY: tag, CONSUMER_GROUP: `${tag}-${name}` };
    expect(await outputOf([`test/bench/floors/${name}.ts`], settings)).not.toContain(WARNING);
  });

  it.each(['identity-linker', 'event-writer'] as const)('not for the service %s', async (name) => {
    const port = await findFreePort();
    const database = { CLICKHOUSE_DATABASE: 'system', ADMIN_PORT: String(port), CONSUMER_GROUP: `${tag}-${name}` };
    const service = openService(name, { ...environment, ...database });
    try {
      await until('it has joined its group', async () =>
        /playline_stream_lag_records\{/.test(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()),
      );
      expect(service.output()).not.toContain(WARNING);
    } finally {
      await service.close();
    }
    expect(service.output()).not.toContain(WARNING);
  });
});
