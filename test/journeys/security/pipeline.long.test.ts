import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SERVICES, securitySettings } from '@playline/infra/local';
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
import { verifyMint } from '../../../infra/local/commands/start.ts';
import {
  countStored,
  type Exit,
  type JourneyStack,
  OPERATOR,
  runProgram,
  startJourneyStack,
  trackMessage,
} from '../stack.ts';

/** Login lifetime after the broker restarts. Clients renew a login in its last ten seconds. */
const LOGIN_MS = 12_000;

/** A stack whose stores require a login and TLS, with a certificate authority that no machine trusts. */
let stack: JourneyStack;
const lines: string[] = [];
const folderWithoutChain = mkdtempSync(join(tmpdir(), 'playline-no-chain-'));

beforeAll(async () => {
  const chainProgram = join(folderWithoutChain, 'no-program');
  writeFileSync(chainProgram, 'for another machine', { mode: 0o755 });
  const report = (line: string) => void lines.push(line);
  stack = await startJourneyStack({ security: true, isLenient: true, report, chain: true, chainProgram });
}, 240_000);
afterAll(async () => {
  await stack?.close();
  rmSync(folderWithoutChain, { recursive: true });
});

function runWithSettings(main: string, args: readonly string[], settings: Record<string, string> = {}): Promise<Exit> {
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

/** Shortens logins in the settings, which the broker reads when it is restarted. */
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

const idsOf = (messages: { messageId: string }[]) => messages.map(({ messageId }) => messageId);

/** Returns the person keys by message, once the messages belong to exactly `count` persons. */
const personsOf = (messages: { messageId: string }[], count: number) =>
  until(`${messages.length} messages belong to ${count} persons`, async () => {
    const ids = idsOf(messages).map((id) => `'${id}'`);
    const rows = await stack.query<{ id: string; person: string }>(
      `SELECT message_id AS id, hex(person_key) AS person FROM events_identified WHERE message_id IN (${ids})`,
    );
    const persons = new Map(rows.map(({ id, person }) => [id, person]));
    return rows.length === messages.length && new Set(persons.values()).size === count ? persons : null;
  });

it('a stack whose chain program cannot run reports the fault once, and runs without minter and indexer', async () => {
  const { file, missing } = stack.stack;
  const services = SERVICES.map(({ name }) => name).filter((name) => name !== 'minter' && name !== 'chain-indexer');
  const stores = ['kafka', 'registry', 'redis', 'clickhouse', 'registry-relay', 'clickhouse-relay'];
  expect(Object.keys(file.processes).toSorted()).toEqual([...stores, ...services].toSorted());
  expect([await verifyMint(file), file.chain]).toEqual([null, undefined]);
  expect(missing).toEqual([
    expect.stringMatching(
      /^The stack runs without the chain, chain-indexer and minter: .* does not run on this machine \(.*\)\. Remove .*--no-chain\)\.$/,
    ),
  ]);
  expect(lines.filter((line) => line.includes('runs without'))).toEqual(missing);
});

describe('a pipeline whose stores require TLS and a login', () => {
  it("the pipeline assigns a player's events before and after identify and alias to one person, but not a stranger's", async () => {
    const [anonymousId, userId, account] = [randomUUID(), randomUUID(), randomUUID()];
    const link = (fields: Record<string, unknown>) => trackMessage({ eventName: undefined, anonymousId, ...fields });
    const ids = { fromId: account, fromType: 'steam', toId: userId, toType: 'passport' };
    const playerMessages = [
      trackMessage({ anonymousId }),
      link({ type: 'identify', userId, identityType: 'passport' }),
      link({ type: 'alias', ...ids }),
      trackMessage({ userId, identityType: 'passport' }),
      trackMessage({ userId }),
      trackMessage({ userId: account, identityType: 'steam' }),
    ];
    const stranger = trackMessage({ anonymousId: randomUUID() });
    for (const message of [...playerMessages, stranger]) expect((await stack.post([message])).status).toBe(200);
    const persons = await personsOf([...playerMessages, stranger], 2);
    expect(new Set(idsOf(playerMessages).map((id) => persons.get(id))).size).toBe(1);
  });

  it('commands with the same settings can read, verify and operate the pipeline', async () => {
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

  it('commands report which setting a store refuses, but not its value', async () => {
    const wrong = `wrong-${randomUUID()}`;
    const { code, err } = await runWithSettings(OPERATOR, ['dead-letters', 'list'], { KAFKA_SASL_PASSWORD: wrong });
    expect([code, err]).toEqual([3, expect.stringMatching(/refuses the login .*KAFKA_SASL_PASSWORD/)]);
    expect(err).not.toContain(wrong);
  });

  const killed = ['event-writer', 'identity-linker', 'gateway', 'redis', 'clickhouse', 'kafka'];

  it.each(killed)(
    'the pipeline restarts a killed %s with a new process id, and loses or duplicates no accepted message',
    async (name) => {
      const before = stack.file().processes;
      if (name === 'kafka') shortenLogins();
      const [batch, later] = [1, 2].map(() => Array.from({ length: 50 }, () => trackMessage()));
      expect((await stack.post(batch!)).status).toBe(200);
      process.kill(before[name]!, 'SIGKILL');
      // Clients resend messages with the same ids until they receive a 2xx response.
      await until('the later batch is accepted', async () => (await stack.post(later!)).status === 200, 60_000);
      expect((await countStored(stack, idsOf([...batch!, ...later!]))).exact).toBe(100);
      await until(
        `${name} has a new process id`,
        () => ![undefined, before[name]].includes(stack.file().processes[name]),
      );
      const { [name]: _, ...others } = stack.file().processes;
      expect(before).toMatchObject(others);
    },
  );

  it('the pipeline continues beyond the lifetime of logins, and no process exits', async () => {
    const before = stack.file().processes;
    const end = performance.now() + 2 * LOGIN_MS;
    const hasEnded = async () => {
      const message = trackMessage();
      expect((await stack.post([message])).status).toBe(200);
      expect((await countStored(stack, [message.messageId])).exact).toBe(1);
      return performance.now() > end;
    };
    await until('every login has expired twice', hasEnded, 120_000);
    expect(stack.file().processes).toEqual(before);
  }, 240_000);

  it('the pipeline writes no secrets to logs', () => {
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
  'every Kafka client can send, publish, read and consume with a %s login',
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

    const ownValues = (records: readonly StreamRecord[]) =>
      records.filter((record) => record.key?.equals(key)).map(({ value }) => String(value));
    // Brokers write the commit marker shortly after they acknowledge the commit.
    const isRead = async () => ownValues(await readTopic({ ...kafka, topic })).join() === 'sent,published';
    await until('both records are read in order', isRead);
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
    await until('the consumer has both records', () => ownValues(consumed).length === 2);
    await consumer.close();
  },
);
