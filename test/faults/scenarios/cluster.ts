// One of three brokers fails while two gateways, linkers and writers are under load.
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import { type Brokers, openBrokers } from '../world/brokers.ts';
import { rowsOf } from '../world/clickhouse.ts';
import { cutFromNetwork } from '../world/network-cut.ts';
import { type Effects, toSeconds } from '../world/report.ts';
import { isStopped } from '../world/service-process.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';
import { awaitReplicas, BROKERS } from './leaders.ts';

type Failure = 'SIGKILL' | 'SIGSTOP' | 'cut';
type Role = 'leader' | 'controller';

/** Longer than a cluster takes to replace a leader (3 s) and a controller (2 s). */
const ABSENT_MS = { min: 5_000, max: 12_000 };
const SAMPLE_MS = 250;

/** @returns the broker that leads most partitions and is not the controller, or the active controller */
async function chooseBroker(brokers: Brokers, topic: string, role: Role): Promise<number> {
  const controller = await brokers.controller();
  if (role === 'controller') return controller;
  const leaders = (await brokers.partitionsOf(topic)).map(({ leader }) => leader).filter((id) => id !== controller);
  const countOf = (id: number) => leaders.filter((leader) => leader === id).length;
  return leaders.toSorted((a, b) => countOf(b) - countOf(a))[0] ?? 0;
}

/** Measures the longest time without a new row in any partition that receives messages. */
function watchRows({ world, environmentId }: Trial) {
  const stop = new AbortController();
  let behindMs = 0;
  const select = `SELECT max(d) FROM (SELECT dateDiff('ms', max(received_at), now64(3)) AS d FROM events
    WHERE environment_id = '${environmentId}' GROUP BY kafka_partition)`;
  const watching = (async () => {
    while (!stop.signal.aborted) {
      const [[ms = '0'] = []] = await rowsOf(world.deployment.engine, select);
      behindMs = Math.max(behindMs, Number(ms));
      await delay(SAMPLE_MS);
    }
  })();
  return async () => {
    stop.abort();
    await watching;
    return behindMs;
  };
}

/** Returns the longest time between two acknowledged batches, and the longest time until one batch was acknowledged. */
function longestGaps({ ledger }: Trial): { acknowledgedMs: number; requestMs: number } {
  const accepted = ledger.attempts.filter(({ status }) => status === 200).sort((a, b) => a.endedAt - b.endedAt);
  const gaps = accepted.map(({ endedAt }, index) => endedAt - (accepted[index - 1]?.endedAt ?? endedAt));
  const longest = (values: readonly number[]) => values.reduce((most, each) => Math.max(most, each), 0);
  return {
    acknowledgedMs: longest(gaps),
    requestMs: longest(ledger.attempts.map(({ beganAt, endedAt }) => endedAt - beganAt)),
  };
}

/** Kills a broker, which the stack restarts, or freezes it or cuts it from the network for some seconds. */
async function fail(trial: Trial, id: number, failure: Failure): Promise<void> {
  const { world, random } = trial;
  const pid = await world.brokerPid(id);
  if (failure === 'SIGKILL') {
    process.kill(pid, failure);
    await waitFor('the broker is restarted', async () => (await world.brokerPid(id)) !== pid);
    return;
  }
  const restore = failure === 'cut' ? cutFromNetwork(pid) : () => process.kill(pid, 'SIGCONT');
  try {
    if (failure === 'SIGSTOP') {
      process.kill(pid, failure);
      await waitFor('the broker is stopped', () => isStopped(pid));
    }
    await delay(random.integer(ABSENT_MS.min, ABSENT_MS.max));
  } finally {
    restore();
  }
}

async function failOne(trial: Trial, role: Role, failure: Failure): Promise<Effects> {
  const { world, random } = trial;
  const brokers = openBrokers(world.stack.file.kafka);
  const topic = world.deployment.topicPrefix + TOPICS.messages.name;
  const cluster = { partitions: () => brokers.partitionsOf(topic) };
  try {
    await awaitReplicas(cluster);
    const traffic = trial.openTraffic([await trial.start('gateway'), await trial.start('gateway')], { pauseMaxMs: 15 });
    await traffic.awaitBatches(random.integer(20, 60));
    const readBehindMs = watchRows(trial);
    const victim = await chooseBroker(brokers, topic, role);
    const before = await cluster.partitions();
    const failed = fail(trial, victim, failure);
    const isReplaced = async () =>
      role === 'controller'
        ? (await brokers.controller()) !== victim
        : (await cluster.partitions()).some(
            ({ leader }, index) => leader !== victim && before[index]?.leader === victim,
          );
    await waitFor(`another ${role} is elected`, isReplaced);
    await traffic.awaitBatches(random.integer(5, 20));
    await failed;
    await awaitReplicas(cluster);
    await traffic.awaitBatches(20);
    const behindMs = await readBehindMs();
    await traffic.close();
    const { acknowledgedMs, requestMs } = longestGaps(trial);
    return {
      [`${role}s replaced`]: 1,
      'no acknowledgement for s': toSeconds(acknowledgedMs),
      'one request took s': toSeconds(requestMs),
      'newest row of a partition was old by s': toSeconds(behindMs),
    };
  } finally {
    await brokers.close();
  }
}

/** Without a name, only the command runs the scenario, because a cut requires root. */
const KINDS: readonly { role: Role; failure: Failure; name?: string }[] = [
  { role: 'leader', failure: 'SIGKILL', name: 'a killed leader' },
  { role: 'leader', failure: 'SIGSTOP', name: 'a frozen leader' },
  { role: 'controller', failure: 'SIGKILL', name: 'a killed controller' },
  { role: 'controller', failure: 'SIGSTOP', name: 'a frozen controller' },
  { role: 'leader', failure: 'cut' },
  { role: 'controller', failure: 'cut' },
];

export const CLUSTER_SCENARIOS: readonly Scenario[] = KINDS.map(({ role, failure, name }) => ({
  fault: 21,
  brokers: BROKERS,
  services: { linkers: 2, writers: 2 },
  ...(name !== undefined && { title: `every acknowledged message has one row despite ${name} among three brokers` }),
  tried: `three brokers, two of each service: the ${role} ${failure === 'cut' ? 'cut from the network' : failure} under load, and back`,
  run: (trial) => failOne(trial, role, failure),
}));
