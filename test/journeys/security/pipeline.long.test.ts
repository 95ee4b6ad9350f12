import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { securitySettings } from '@playline/infra/local';
import type { KafkaSecurity } from '@playline/runtime';
import type { OutgoingRecord, StreamRecord } from '@playline/stream';
import {
  openAtomicPublisher,
  openLogReader,
  openProducer,
  openRecordConsumer,
  readTopic,
} from '@playline/stream/kafka';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type JourneyStack,
  OPERATOR,
  type Ran,
  runProgram,
  startJourneyStack,
  stored,
  trackMessage,
} from '../stack.ts';

/** Lifetime of a login to the broker after its restart: more than the ten seconds before the end in which clients renew. */
const LOGIN_MS = 12_000;

/** A stack whose stores need a login and TLS, with a certificate authority that no machine trusts. */
let stack: JourneyStack;

beforeAll(async () => {
  stack = await startJourneyStack({ security: true });
}, 240_000);
afterAll(() => stack?.close());

/** Runs a program of the checkout with the settings of a deployment. */
function runWithSettings(main: string, args: readonly string[], settings: Record<string, string> = {}): Promise<Ran> {
  const { kafka, redis, registry, clickhouse, security } = stack.file();
  const env = {
    KAFKA_BROKERS: kafka.join(','),
    REDIS_URL: redis,
    SCHEMA_REGISTRY_URL: registry,
    CLICKHOUSE_URL: clickhouse.url,
    CLICKHOUSE_PASSWORD: clickhouse.password,
    ...securitySettings(security!),
    ...settings,
  };
  return runProgram(main, args, { env });
}

/** The broker reads its settings when it starts, which it does after it was killed. */
function shortenLogins(): void {
  const path = join(stack.folder, 'etc', 'kafka.properties');
  const text = readFileSync(path, 'utf8');
  const shortened = text.replace(/(?<=connections\.max\.reauth\.ms=).*$/gm, String(LOGIN_MS));
  expect(shortened).not.toBe(text);
  writeFileSync(path, shortened);
}

async function send(record: OutgoingRecord, security: KafkaSecurity): Promise<void> {
  const options = { brokers: stack.file().kafka, security, clientId: 'test', topics: [record.topic] };
  const producer = await openProducer(options);
  await producer.sendForOffset(record).finally(() => producer.close());
}

describe('a pipeline whose stores need TLS and a login', () => {
  it('stores what is posted in ClickHouse, linked to its person, once each', async () => {
    const userId = `user-${randomUUID()}`;
    const anonymousId = `anonymous-${randomUUID()}`;
    const identify = { type: 'identify', anonymousId, userId, identityType: 'passport' };
    const tracks = Array.from({ length: 50 }, () => trackMessage({ anonymousId, surface: 'unity' }));
    const { eventName: _, ...message } = trackMessage();
    const answer = await stack.post([...tracks, { ...message, ...identify }]);
    expect(answer).toMatchObject({ status: 200, body: { accepted: 51, rejected: 0 } });
    const ids = tracks.map(({ messageId }) => messageId);
    expect(await stored(stack, ids)).toEqual({ raw: 50, exact: 50 });
    const known = `SELECT message_id FROM events_identified WHERE anonymous_id = '${anonymousId}' AND notEmpty(toString(person_key))`;
    await until('the events are a known person', async () => [50, 51].includes((await stack.query(known)).length));
  });

  it('can be read, verified and operated by the commands with the same settings', async () => {
    const expected = [
      ['keys list', 'demo-production'],
      ['dead-letters list', 'no dead letters'],
      ['offsets list --json', 'event-writer'],
      ['verify --json', '"'],
    ] as const;
    await Promise.all(
      expected.map(async ([command, text]) =>
        expect((await runWithSettings(OPERATOR, command.split(' '))).out, command).toContain(text),
      ),
    );
    const { gateway = '', keys } = stack.file();
    const target = ['--gateway', gateway, '--key', keys?.production.publishable ?? ''];
    const game = '--messages 200 --players 5 --rate 0 --json --environment production --yes'.split(' ');
    const { out } = await runWithSettings('test/simulate/main.ts', [...target, ...game]);
    expect(JSON.parse(out)).toMatchObject({ ok: true, differences: [] });
  });

  it('reports to the operator which setting a store refuses, but not its value', async () => {
    const wrong = `wrong-${randomUUID()}`;
    const { code, err } = await runWithSettings(OPERATOR, ['dead-letters', 'list'], { KAFKA_SASL_PASSWORD: wrong });
    expect([code, err]).toEqual([3, expect.stringMatching(/refuses the login .*KAFKA_SASL_PASSWORD/)]);
    expect(err).not.toContain(wrong);
  });

  it('keeps working for longer than logins last, also with a broker that was killed, without any process ending', async () => {
    const before = stack.file().processes;
    shortenLogins();
    process.kill(before.kafka!, 'SIGKILL');
    const isTaken = async () => {
      const message = trackMessage();
      const { status } = await stack.post([message]);
      return status === 200 && (await stored(stack, [message.messageId])).exact === 1;
    };
    await until('messages are stored again', isTaken);
    const end = performance.now() + 26_000;
    const isOver = async () => {
      expect(await isTaken()).toBe(true);
      return performance.now() > end;
    };
    await until('every login has ended twice', isOver, 120_000);
    const { gateway, 'identity-linker': linker, 'event-writer': writer } = stack.file().processes;
    expect([gateway, linker, writer]).toEqual([before.gateway, before['identity-linker'], before['event-writer']]);
  }, 240_000);

  it('writes no secret into any log', () => {
    const { security, clickhouse, redis } = stack.file();
    const { kafka, registry } = security!;
    const secrets = [kafka.password, registry.password, clickhouse.password, new URL(redis).password];
    const logs = join(stack.folder, 'logs');
    expect(readdirSync(logs)).toContain('chain-api.log');
    for (const name of readdirSync(logs)) {
      const log = readFileSync(join(logs, name), 'utf8');
      for (const secret of secrets) expect(log.includes(secret), name).toBe(false);
    }
  });
});

it.each(['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const)(
  'every Kafka client can send, publish, read and consume with logins by %s',
  async (mechanism) => {
    const { security, kafka: brokers } = stack.file();
    const tls = { ca: readFileSync(security!.caFile, 'utf8') };
    const kafka = { brokers, security: { tls, sasl: { mechanism, ...security!.kafka } } };
    const topic = 'audience.erasures.v1';
    const key = Buffer.from(randomUUID());
    await send({ topic, key, value: Buffer.from('sent') }, kafka.security);
    const publisher = await openAtomicPublisher({ ...kafka, name: `publisher-${mechanism}` });
    await publisher.publish([{ topic, key, value: Buffer.from('published'), headers: {} }]);
    await publisher.close();

    const mine = (records: readonly StreamRecord[]) =>
      records.filter((record) => record.key?.equals(key)).map(({ value }) => String(value));
    // Brokers write the commit marker a moment after they acknowledge the commit.
    const isRead = async () => mine(await readTopic({ ...kafka, topic })).join() === 'sent,published';
    await until('both are read, in their order', isRead);
    const reader = openLogReader({ ...kafka, clientId: 'test' });
    expect((await reader.bounds(topic)).length).toBeGreaterThan(0);
    await reader.close();

    const consumed: StreamRecord[] = [];
    const consumer = await openRecordConsumer({
      ...kafka,
      groupId: `test-${mechanism}-${randomUUID()}`,
      topics: [topic],
      sessionTimeoutMs: 10_000,
      onBatch: async (records) => void consumed.push(...records),
    });
    await until('the consumer has both', () => mine(consumed).length === 2);
    await consumer.close();
  },
);
