import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Admin, ConfigResourceTypes } from '@platformatic/kafka';
import { TOPICS } from '@playline/contracts';
import { until } from '@playline/testkit';
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

it('a cluster stores every topic on three brokers, two of which must be in sync', async () => {
  const admin = new Admin({ clientId: 'test', bootstrapBrokers: stack.file.kafka });
  const topics = ['__consumer_offsets', '__transaction_state', TOPICS.messages.name];
  try {
    const { brokers, topics: found } = await admin.metadata({ topics });
    expect(brokers.size).toBe(3);
    for (const [name, { partitions }] of found)
      for (const { replicas } of Object.values(partitions)) expect(replicas, name).toHaveLength(3);
    const resources = topics.map((resourceName) => ({ resourceType: ConfigResourceTypes.TOPIC, resourceName }));
    for (const { resourceName, configs } of await admin.describeConfigs({ resources })) {
      const settingOf = (setting: string) => configs.find(({ name }) => name === setting)?.value;
      expect(settingOf('min.insync.replicas'), resourceName).toBe('2');
      expect(settingOf('unclean.leader.election.enable'), resourceName).toBe('false');
    }
  } finally {
    await admin.close();
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
      await until('only the frozen broker does not serve', async () => {
        const states = Object.entries(await statesOf()).filter(([, state]) => state !== 'serves');
        expect(states).toEqual([[name, 'does not serve']]);
        return true;
      });
      for (const gateway of [stack.file.gateway, stack.file.others?.['gateway-2']])
        await verifyRoundTrip({ ...stack.file, gateway: gateway ?? '' });
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await until('every process serves', async () => Object.values(await statesOf()).every((each) => each === 'serves'));
  }
});
