import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TOPICS } from '@playline/contracts';
import { until } from '@playline/testkit';
import { ConfigResourceTypes, Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findLines } from './commands/logs.ts';
import { verifyRoundTrip } from './round-trip.ts';
import { startStack } from './stack.ts';
import type { Stack } from './stack-options.ts';
import { readStatus } from './status.ts';
import { claimSupervision, releaseSupervision } from './supervisor.ts';

const START_MS = 400_000;
const directory = mkdtempSync(join(tmpdir(), 'playline-cluster-'));
let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ directory, cluster: true, services: ['gateway', 'event-writer', 'identity-linker'] });
  claimSupervision(stack.paths);
}, START_MS);

afterAll(async () => {
  if (stack !== undefined) releaseSupervision(stack.paths);
  await stack?.stop();
  rmSync(directory, { recursive: true, force: true });
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

it('a cluster runs two processes of each service, and status reports each process', async () => {
  const services = ['gateway', 'event-writer', 'identity-linker'].flatMap((name) => [name, `${name}-2`]);
  const stores = ['kafka', 'kafka-2', 'kafka-3', 'registry', 'redis', 'clickhouse'];
  const expected = Object.fromEntries([...stores, ...services].map((name) => [name, 'serves']));
  await until('every process serves', async () => {
    expect(await statesOf()).toEqual(expected);
    return true;
  });
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
