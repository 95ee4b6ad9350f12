import assert from 'node:assert/strict';
import { statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { TOPICS } from '@playline/contracts';
import { deliver } from '../linker-persons.ts';
import { rowsOf } from '../world/clickhouse.ts';
import { settle } from '../world/end-check.ts';
import { metricsOf, sumOf } from '../world/metrics.ts';
import { operate } from '../world/operate.ts';
import type { Effects } from '../world/report.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';
import type { World } from '../world/world.ts';

/** Enough offsets that a truncation removes several batches and leaves several. */
const OFFSETS_MIN = 10;
const SEGMENT = '00000000000000000000.log';

// Truncates log files, as a power loss would, and kills the broker, which the stack then restarts.
async function truncateLogs({ world, random }: Trial): Promise<{ partition: number }[]> {
  const topic = world.deployment.topicPrefix + TOPICS.messages.name;
  const bounds = await world.log.bounds(topic);
  const large = bounds.filter(({ start, end }) => end - start >= OFFSETS_MIN);
  const truncations = large.slice(0, random.integer(1, bounds.length));
  const broker = await world.storePid('kafka');
  process.kill(broker, 'SIGSTOP');
  for (const { partition } of truncations) {
    const file = join(world.stack.paths.state, 'data', 'kafka', 'data', `${topic}-${partition}`, SEGMENT);
    const { size } = statSync(file);
    // The file may end within a batch, which the broker drops.
    truncateSync(file, random.integer(Math.ceil(size / 5), Math.floor((size * 3) / 4)));
  }
  process.kill(broker, 'SIGKILL');
  await waitFor('the broker has exited', () => world.stack.file.processes.kafka !== broker);
  return truncations;
}

interface Listed {
  partitions: { topic: string; partition: number; obstacle: string | null; finding: { kind: string } }[];
}

/** Accepts the truncated log of every paused partition. @returns the number of partitions per finding */
async function acceptAll(world: World, truncations: readonly { partition: number }[]): Promise<Effects> {
  const group = ['--group', world.groupOf('event-writer')];
  const listed = await operate(world, ['offsets', 'list', ...group, '--json']);
  const { partitions: all } = JSON.parse(listed.stdout) as Listed;
  const paused = all.filter(({ obstacle }) => obstacle !== null);
  assert.deepEqual(
    paused.map(({ partition }) => partition).sort((a, b) => a - b),
    truncations.map(({ partition }) => partition),
    `exactly the truncated partitions must be paused: ${JSON.stringify(all)}`,
  );
  for (const { topic, partition } of paused) {
    const target = ['--topic', topic, '--partition', String(partition)];
    const { code, stdout, stderr } = await operate(world, ['offsets', 'accept', ...group, ...target]);
    assert.equal(code, 0, `${stdout}${stderr}`);
  }
  const count = (kind: string) => paused.filter(({ finding }) => finding.kind === kind).length;
  const [shortened, extended] = [count('shortened'), count('exchanged')];
  // Which of the two findings occurs depends on the traffic.
  return {
    'logs truncated': truncations.length,
    ...(shortened > 0 ? { 'partitions found truncated': shortened } : {}),
    ...(extended > 0 ? { 'partitions found extended past the commit': extended } : {}),
  };
}

async function run(trial: Trial, { isStopped, batches }: { isStopped: boolean; batches: number }): Promise<Effects> {
  const { world, random } = trial;
  const first = await trial.start('gateway');
  const before = trial.openTraffic([first]);
  await before.awaitBatches(random.integer(30, 60));
  await before.close();
  await settle(world);
  await first.close();
  if (isStopped) await world.setServices({ linkers: 1, writers: 0 });
  const truncations = await truncateLogs(trial);
  await waitFor('the broker is running again', async () => (await world.log.bounds('')).length === 0);
  const second = await trial.start('gateway');
  const after = trial.openTraffic([second]);
  await after.awaitBatches(batches);
  await after.close();
  const running = trial.services.find(({ service }) => service === 'event-writer')!;
  const writer = isStopped ? await trial.launch('event-writer') : running;
  if (truncations.length > 0) {
    const countPaused = async () => sumOf(await metricsOf(writer), 'playline_stream_stopped_partitions', 'messages');
    await waitFor('the writer reports paused partitions', async () => (await countPaused()) === truncations.length);
    assert.equal(await writer.isReady(), false, 'a writer with paused partitions is not ready');
  }
  const effects = await acceptAll(world, truncations);
  await waitFor('the writer is ready again, without a restart', () => writer.isReady());
  return effects;
}

export const logTruncatedWhileRead: Scenario = {
  fault: 16,
  title: 'a writer pauses partitions whose log was truncated, and resumes after an operator accepts the log',
  tried: 'broker killed and its logs truncated while the writer is running',
  replacesLog: true,
  run: (trial) => run(trial, { isStopped: false, batches: trial.random.integer(1, 60) }),
};

export const logTruncatedWhileStopped: Scenario = {
  fault: 16,
  tried: 'broker killed, its logs truncated and extended again while the writer is stopped',
  replacesLog: true,
  run: (trial) => run(trial, { isStopped: true, batches: trial.random.integer(1, 120) }),
};

const DAY_MS = 24 * 60 * 60 * 1000;
/** One day less than the contract's maximum event age, and ten times the log's retention. */
const AGE_MS = 29 * DAY_MS;

export const oldEventStored: Scenario = {
  fault: 9,
  title: 'an event from 29 days ago is retained in the log for the usual time and is stored with its original time',
  tried: 'events 29 days old arrive while the writer is stopped',
  services: { linkers: 1, writers: 0 },
  run: async ({ world, start, key, ledger, environmentId }) => {
    assert.ok(TOPICS.messages.retentionMs < AGE_MS, 'the event is older than the log’s retention');
    const gateway = await start('gateway');
    const beganAtMs = Date.now();
    const eventTimestamp = new Date(beganAtMs - AGE_MS).toISOString();
    const message = { type: 'track', eventName: 'old', anonymousId: 'a', eventTimestamp };
    const [messageId] = await deliver({ ledger, gateway, key }, [message]);
    // Retention deletes segments by record timestamp, which must not be the event time.
    const topic = world.deployment.topicPrefix + TOPICS.messages.name;
    for (const { partition, start: from, end } of await world.log.bounds(topic))
      for await (const record of world.log.read({ topic, partition, start: from, end }))
        assert.ok(record.timestampMs >= beganAtMs - DAY_MS, `record time ${record.timestampMs}`);
    await world.setServices({ linkers: 1, writers: 1 });
    await settle(world);
    const stored = await rowsOf(
      world.deployment.engine,
      `SELECT toUnixTimestamp64Milli(event_time) FROM events_exact
       WHERE environment_id = '${environmentId}' AND message_id = '${messageId}'`,
    );
    assert.deepEqual(stored, [[String(Date.parse(eventTimestamp))]]);
    return { 'events older than the log’s retention': stored.length };
  },
};
