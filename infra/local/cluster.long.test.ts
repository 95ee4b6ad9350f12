import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TOPICS } from '@playline/contracts';
import { sendStatement } from '@playline/stores';
import { until } from '@playline/testkit';
import { ConfigResourceTypes, Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { runCommand } from './command.ts';
import { doctor } from './commands/doctor.ts';
import { findLines } from './commands/logs.ts';
import { nodeNames } from './node-names.ts';
import { CHECKOUT, logFileOf } from './paths.ts';
import { queryRedisOnce } from './redis.ts';
import { redisNodeUrls } from './redis-cluster.ts';
import { verifyRoundTrip } from './round-trip.ts';
import { environmentWithoutStores } from './services.ts';
import { startStack } from './stack.ts';
import { publishableKeyHeaderOf, secretKeyHeaderOf } from './stack-file.ts';
import type { Stack } from './stack-options.ts';
import { readStatus } from './status.ts';
import { claimSupervision, releaseSupervision } from './supervisor.ts';

const START_MS = 400_000;
/** The eraser restores the fences of persons, without which a restarted Redis node serves no identities. */
const SERVICES = ['gateway', 'event-writer', 'identity-linker', 'eraser'] as const;
const folder = mkdtempSync(join(tmpdir(), 'playline-cluster-'));
/** Operator commands find the stack below their working directory. */
const directory = join(folder, '.playline');
let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ directory, cluster: true, services: [...SERVICES] });
  claimSupervision(stack.paths);
}, START_MS);

afterAll(async () => {
  if (stack !== undefined) releaseSupervision(stack.paths);
  await stack?.stop();
  rmSync(folder, { recursive: true, force: true });
}, START_MS);

const statesOf = async () =>
  Object.fromEntries(((await readStatus(stack.paths)) ?? []).map(({ name, state }) => [name, state]));

/** @returns one line per process that does not serve, with the reason */
const findFaults = async () =>
  ((await readStatus(stack.paths)) ?? []).flatMap(({ name, state, reason }) =>
    state === 'serves' ? [] : [`${name} ${state}: ${reason}`],
  );

it('a cluster stores every topic on three brokers, two of which must be in sync', async () => {
  const admin = new Kafka({ brokers: stack.file.kafka, logLevel: logLevel.NOTHING }).admin();
  const names = ['__consumer_offsets', TOPICS.messages.name];
  await admin.connect();
  try {
    expect((await admin.describeCluster()).brokers).toHaveLength(3);
    for (const { name, partitions } of (await admin.fetchTopicMetadata({ topics: names })).topics)
      for (const { replicas } of partitions) expect(replicas, name).toHaveLength(3);
    const topics = names.map((name) => ({ type: ConfigResourceTypes.TOPIC, name }));
    // The first transaction creates its topic.
    const resources = [...topics, { type: ConfigResourceTypes.BROKER, name: '1' }];
    const described = await admin.describeConfigs({ includeSynonyms: false, resources });
    const settings = described.resources.map(({ configEntries }) =>
      Object.fromEntries(configEntries.map(({ configName, configValue }) => [configName, configValue])),
    );
    const expected = { 'min.insync.replicas': '2', 'unclean.leader.election.enable': 'false' };
    const transactions = {
      'transaction.state.log.replication.factor': '3',
      'transaction.state.log.min.isr': '2',
    };
    expect(settings).toMatchObject([expected, expected, { ...expected, ...transactions }]);
  } finally {
    await admin.disconnect();
  }
});

it('a cluster runs two processes of each service, and status, doctor and logs report each process', async () => {
  const services = SERVICES.flatMap((name) => [name, `${name}-2`]);
  const nodes = [...nodeNames('redis', 6), ...nodeNames('clickhouse', 2)];
  const stores = [...nodeNames('kafka', 3), 'registry', ...nodes];
  const expected = Object.fromEntries([...stores, ...services].map((name) => [name, 'serves']));
  await until('every process serves', async () => {
    expect(await statesOf()).toEqual(expected);
    return true;
  });
  const printed: string[] = [];
  const spy = vi.spyOn(console, 'log').mockImplementation((line) => void printed.push(String(line)));
  await doctor(stack.paths, ['--cluster']).finally(() => spy.mockRestore());
  expect(printed.at(-1)).toContain(`all ${Object.keys(expected).length} processes serve`);
  const lines = await findLines(stack.paths, ['event-writer', 'event-writer-2'], (line) => line.includes('"msg"'));
  expect(new Set(lines.map(({ name }) => name))).toEqual(new Set(['event-writer', 'event-writer-2']));
});

it('either gateway accepts events while any one broker is frozen, and status reports only this broker', {
  timeout: START_MS,
}, async () => {
  for (const name of ['kafka', 'kafka-2', 'kafka-3']) {
    const pid = stack.file.processes[name] ?? 0;
    process.kill(pid, 'SIGSTOP');
    try {
      // Until the frozen broker is replaced as leader, a message is answered with 500, and clients resend it.
      for (const gateway of [stack.file.gateway, stack.file.others?.['gateway-2']])
        await until('the message has a row', () => verifyRoundTrip({ ...stack.file, gateway: gateway ?? '' }));
      await until('only the frozen broker does not serve', async () => {
        const faults = await findFaults();
        if (faults.length !== 1 || !faults[0]?.startsWith(`${name} does not serve: `))
          throw new Error(faults.join('\n'));
        return true;
      });
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await until('every process serves', async () => (await findFaults()).length === 0);
  }
});

type Message = Record<string, unknown> & { readonly messageId: string };

function track(fields: Record<string, unknown>): Message {
  const eventTimestamp = new Date().toISOString();
  return { type: 'track', messageId: randomUUID(), eventTimestamp, eventName: 'level_started', ...fields };
}

const identify = (anonymousId: string, userId: string): Message =>
  track({ type: 'identify', eventName: undefined, anonymousId, userId, identityType: 'steam' });

const gateways = () => [stack.file.gateway, stack.file.others?.['gateway-2']] as string[];

/** Posts a batch, and again after a failure, as clients do. */
const post = (messages: readonly Message[], gateway = gateways()[0]): Promise<boolean> =>
  until('a gateway accepts the batch', async () => {
    const response = await fetch(`${gateway}/v1/audience/messages`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        [publishableKeyHeaderOf(stack.file)]: stack.file.keys?.production.publishable ?? '',
      },
      body: JSON.stringify({ messages }),
      signal: AbortSignal.timeout(10_000),
    });
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
    return ((await response.json()) as { accepted: number }).accepted === messages.length;
  });

/** Runs a query on the home, or on the node with this address. */
async function query(sql: string, url = stack.file.clickhouse.url): Promise<string> {
  const response = await sendStatement({ ...stack.file.clickhouse, url }, { body: sql, deadlineMs: 15_000 });
  return (await response.text()).trim();
}

const quoted = (ids: readonly string[]) => ids.map((id) => `'${id}'`).join();
const clickhouseNodes = () => stack.file.clickhouse.cluster?.urls ?? [];

const DEVICES = 10;

/** Posts events of a person with several devices, whose rows are on both ClickHouse nodes. */
async function postPerson() {
  const userId = randomUUID();
  const devices = Array.from({ length: DEVICES }, () => randomUUID());
  const sent = devices.flatMap((id) => [track({ anonymousId: id }), identify(id, userId)]);
  await post(sent);
  const person = { userId, ids: quoted(sent.map(({ messageId }) => messageId)) };
  await awaitPersons(person, 1);
  return person;
}

type PostedPerson = Awaited<ReturnType<typeof postPerson>>;

/** Waits until all events have one row, and belong to this number of persons. */
const awaitPersons = ({ ids }: PostedPerson, persons: number) =>
  until(`the events belong to ${persons} persons`, async () => {
    const sql = `SELECT count(), uniqExact(person_key) FROM events_identified WHERE message_id IN (${ids}) FORMAT TSV`;
    expect(await query(sql)).toBe(`${2 * DEVICES}\t${persons}`);
    return true;
  });

const countEvents = async ({ ids }: PostedPerson, url: string) =>
  Number(await query(`SELECT count() FROM events WHERE message_id IN (${ids})`, url));

it('events of a person on both ClickHouse nodes have one row each and the same person', async () => {
  const person = await postPerson();
  for (const url of clickhouseNodes()) expect(await countEvents(person, url), url).toBeGreaterThan(0);
});

function run(main: string, args: readonly string[]): Promise<string> {
  const options = { folder, env: environmentWithoutStores(), logFile: logFileOf(stack.paths, 'operator') };
  return runCommand(process.execPath, [join(CHECKOUT, main), ...args], options);
}

/** Commands take seconds to start on a busy machine. */
const COMMANDS_MS = 180_000;

const operate = (...args: readonly string[]) => run('services/operator/src/main.ts', args);
const operateJson = async (...args: readonly string[]) => JSON.parse(await operate(...args, '--json'));

it('operator commands find, split and erase a person whose events are on both ClickHouse nodes', {
  timeout: START_MS,
}, async () => {
  const person = await postPerson();
  for (const url of clickhouseNodes()) {
    const id = await query(`SELECT toString(any(message_id)) FROM events WHERE message_id IN (${person.ids})`, url);
    expect((await operateJson('trace', id)).messages).toHaveLength(1);
  }
  const subject = ['--environment', 'production', '--kind', 'steam', '--id', person.userId];
  expect(await operateJson('identity', 'resolve', ...subject)).toMatchObject({ isLinked: true, agrees: true });
  const members = await operate('identity', 'members', ...subject, '--raw', '--json');
  expect(members.trim().split('\n').length).toBeGreaterThan(DEVICES);
  await operate('identity', 'unlink', ...subject, '--kind', 'untyped', '--id', person.userId, '--yes');
  await awaitPersons(person, 2);

  const erased = await postPerson();
  const response = await fetch(`${gateways()[1]}/v1/audience/data?userId=${erased.userId}`, {
    method: 'DELETE',
    headers: { [secretKeyHeaderOf(stack.file)]: stack.file.keys?.production.secret ?? '' },
  });
  const id = response.headers.get('x-erasure-id') ?? '';
  await until('the erasure has a receipt', () => operate('erasures', 'show', id), COMMANDS_MS);
  expect(await operate('erasures', 'list')).toContain(id);
  await operate('erasures', 'verify', id);
  await operate('erasures', 'scrub');
  for (const url of clickhouseNodes()) expect(await countEvents(erased, url), url).toBe(0);
});

it('derive restores derived rows that one ClickHouse node has lost', { timeout: START_MS }, async () => {
  const { ids } = await postPerson();
  const keys = `SELECT identity_key FROM events WHERE message_id IN (${ids})`;
  for (const url of clickhouseNodes().slice(1))
    await query(`DELETE FROM identity_days WHERE identity_key IN (${keys})`, url);
  await expect(operate('verify')).rejects.toThrow('identity_days');
  expect(await operate('derive')).toContain('rows repaired');
  expect(await operate('verify')).toContain('no differences');
});

it('a dead letter is listed and dropped, and offsets of all partitions are reported', {
  timeout: START_MS,
}, async () => {
  const kafka = new Kafka({ brokers: stack.file.kafka, logLevel: logLevel.NOTHING });
  const producer = kafka.producer();
  await producer.connect();
  await producer
    .send({ topic: TOPICS.messages.name, messages: [{ value: 'unreadable' }] })
    .finally(() => producer.disconnect());
  await until(
    'the dead letter is listed',
    async () => (await operate('dead-letters', 'list')).includes('1 open'),
    COMMANDS_MS,
  );
  await operate('dead-letters', 'drop', '--all', '--note', 'test', '--yes');
  expect(await operate('dead-letters', 'list')).toContain('1 dropped');
  const { partitions } = await operateJson('offsets', 'list');
  expect(partitions.length).toBeGreaterThan(0);
});

it('rebuild restores persons, consents and keys after all Redis nodes have lost their data', {
  timeout: START_MS,
}, async () => {
  const person = await postPerson();
  const consent = '/v1/audience/tracking-consent';
  const headers = {
    'content-type': 'application/json',
    [publishableKeyHeaderOf(stack.file)]: stack.file.keys?.production.publishable ?? '',
  };
  const anonymousId = randomUUID();
  const put = { method: 'PUT', headers, body: JSON.stringify({ anonymousId, status: 'full', source: 'settings' }) };
  await until('the consent is accepted', async () => (await fetch(`${gateways()[0]}${consent}`, put)).ok);
  for (const url of redisNodeUrls(stack.file.redis))
    await queryRedisOnce({ url }, (node) => node.call('FLUSHALL')).catch((error: Error) => {
      if (!error.message.includes('READONLY')) throw error;
    });
  await operate('rebuild');
  await operate('consent', 'rebuild');
  await until('a gateway returns the consent', async () => {
    const response = await fetch(`${gateways()[1]}${consent}?anonymousId=${anonymousId}`, { headers });
    return response.ok && (await response.text()).includes('full');
  });
  await post([identify(randomUUID(), person.userId)]);
  await until('verify finds no differences', () => operate('verify'), COMMANDS_MS);
});

it('simulated traffic has one row per message and the expected persons', { timeout: START_MS }, async () => {
  const args = ['--messages', '3000', '--rate', '0', '--seed', '42', '--json'];
  const report = await run('test/simulate/main.ts', args);
  expect(JSON.parse(report)).toMatchObject({ ok: true });
});

it('a backup restores both ClickHouse nodes after they have lost their data', { timeout: 2 * START_MS }, async () => {
  const person = await postPerson();
  const backups = join(folder, 'backups');
  await operate('backup', '--to', backups);
  await stack.stop();
  for (const name of nodeNames('clickhouse', 2)) rmSync(join(directory, 'data', name), { recursive: true });
  stack = await startStack({ directory, cluster: true, services: [], createsTables: true });
  await operate('restore', '--from', backups, '--yes');
  await stack.stop();
  stack = await startStack({ directory, cluster: true, services: [...SERVICES] });
  await awaitPersons(person, 1);
  for (const url of clickhouseNodes()) expect(await countEvents(person, url), url).toBeGreaterThan(0);
  expect(await operate('verify')).toContain('no differences');
});
