// One of three brokers, or one of two processes of a service, fails under load and returns.
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import { type Brokers, openBrokers } from '../world/brokers.ts';
import { rowsOf } from '../world/clickhouse.ts';
import { cutFromNetwork } from '../world/network-cut.ts';
import { type Effects, toSeconds } from '../world/report.ts';
import { isStopped, type ServiceName, type ServiceProcess } from '../world/service-process.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';
import { awaitReplicas, BROKERS } from './leaders.ts';

type Failure = 'SIGKILL' | 'SIGSTOP' | 'cut';
type Role = 'leader' | 'controller' | ServiceName;

/** Longer than a cluster takes to replace a leader (3 s), a controller (2 s) or a member of a group (2 s). */
const ABSENT_MS = { min: 5_000, max: 12_000 };
const SAMPLE_MS = 250;

/** A process that fails. */
interface Target {
  readonly pid: number;
  /** Resolves when another process has replaced the killed one. */
  awaitRestart(): Promise<unknown>;
  /** Returns true when the other processes do the work of this one. */
  isReplaced(): Promise<boolean>;
}

/** @returns the broker that leads most partitions and is not the controller, or the active controller */
async function chooseBroker(brokers: Brokers, topic: string, role: Role): Promise<number> {
  const controller = await brokers.controller();
  if (role === 'controller') return controller;
  const leaders = (await brokers.partitionsOf(topic)).map(({ leader }) => leader).filter((id) => id !== controller);
  const countOf = (id: number) => leaders.filter((leader) => leader === id).length;
  return leaders.toSorted((a, b) => countOf(b) - countOf(a))[0] ?? 0;
}

async function toBroker({ world }: Trial, brokers: Brokers, role: 'leader' | 'controller'): Promise<Target> {
  const topic = world.deployment.topicPrefix + TOPICS.messages.name;
  const id = await chooseBroker(brokers, topic, role);
  const pid = await world.brokerPid(id);
  const led = (await brokers.partitionsOf(topic)).filter(({ leader }) => leader === id);
  return {
    pid,
    awaitRestart: () => waitFor('the broker is restarted', async () => (await world.brokerPid(id)) !== pid),
    isReplaced: async () => {
      if (role === 'controller') return (await brokers.controller()) !== id;
      const leaders = await brokers.partitionsOf(topic);
      return led.length > 0 && led.every(({ partition }) => ![id, -1].includes(leaders[partition]?.leader ?? id));
    },
  };
}

function toProcess(trial: Trial, role: ServiceName, processes: readonly ServiceProcess[]): Target {
  const child = trial.random.pick(processes.filter(({ service }) => service === role));
  // The gateways share nothing, and the end of the trial shows whether another member has taken over all partitions.
  return { pid: child.pid, awaitRestart: () => trial.start(role), isReplaced: async () => true };
}

/** Measures the longest time without a new row in any partition that receives messages. */
function watchRows({ world, environmentId }: Trial) {
  const stop = new AbortController();
  let behindMs = 0;
  const select = `SELECT max(d) FROM (SELECT dateDiff('ms', max(received_at), now64(3)) AS d FROM events
    WHERE environment_id = '${environmentId}' GROUP BY kafka_partition)`;
  const watching = (async () => {
    while (!stop.signal.aborted) {
      // A failed query, for example on a connection that ClickHouse has closed, is only one sample less.
      const [[ms = '0'] = []] = await rowsOf(world.deployment.engine, select).catch((): string[][] => []);
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

/** Returns the longest time between two acknowledged batches, and the longest time until a request was answered. */
function longestGaps({ ledger }: Trial): { acknowledgedMs: number; requestMs: number } {
  const accepted = ledger.attempts.filter(({ status }) => status === 200).sort((a, b) => a.endedAt - b.endedAt);
  const gaps = accepted.map(({ endedAt }, index) => endedAt - (accepted[index - 1]?.endedAt ?? endedAt));
  const longest = (values: readonly number[]) => values.reduce((most, each) => Math.max(most, each), 0);
  return {
    acknowledgedMs: longest(gaps),
    requestMs: longest(ledger.attempts.map(({ beganAt, endedAt }) => endedAt - beganAt)),
  };
}

/** Kills and replaces a process, or freezes it or cuts it from the network for some seconds. */
async function fail({ random }: Trial, { pid, awaitRestart }: Target, failure: Failure): Promise<void> {
  if (failure === 'SIGKILL') {
    process.kill(pid, failure);
    await awaitRestart();
    return;
  }
  const restore = failure === 'cut' ? cutFromNetwork(pid) : () => process.kill(pid, 'SIGCONT');
  try {
    if (failure === 'SIGSTOP') {
      process.kill(pid, failure);
      await waitFor('the process is stopped', () => isStopped(pid));
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
    const gateways = [await trial.start('gateway'), await trial.start('gateway')];
    const traffic = trial.openTraffic(gateways, { pauseMaxMs: 15 });
    await traffic.awaitBatches(random.integer(20, 60));
    const readBehindMs = watchRows(trial);
    const isBroker = role === 'leader' || role === 'controller';
    const target = isBroker
      ? await toBroker(trial, brokers, role)
      : toProcess(trial, role, [...gateways, ...trial.services]);
    const failed = fail(trial, target, failure);
    await waitFor(`another ${role} is active`, target.isReplaced);
    await traffic.awaitBatches(random.integer(5, 20));
    await failed;
    await awaitReplicas(cluster);
    await traffic.awaitBatches(20);
    const behindMs = await readBehindMs();
    await traffic.close();
    const { acknowledgedMs, requestMs } = longestGaps(trial);
    return {
      [`${role} failed`]: 1,
      'no acknowledgement for s': toSeconds(acknowledgedMs),
      'one request took s': toSeconds(requestMs),
      'newest row of a partition was old by s': toSeconds(behindMs),
    };
  } finally {
    await brokers.close();
  }
}

const FAILURES: Readonly<Record<Failure, string>> = {
  SIGKILL: 'killed',
  SIGSTOP: 'frozen',
  cut: 'cut from the network',
};
const ROLES: readonly Role[] = ['leader', 'controller', 'gateway', 'event-writer', 'identity-linker'];

/** The command tries all scenarios, tests only those of brokers that do not require root. */
const titleOf = (role: Role, failure: Failure): Pick<Scenario, 'title'> =>
  failure === 'cut' || (role !== 'leader' && role !== 'controller')
    ? {}
    : {
        title: `every acknowledged message has one row if the ${role} of a cluster is ${FAILURES[failure]} under load`,
      };

export const CLUSTER_SCENARIOS: readonly Scenario[] = ROLES.flatMap((role) =>
  (['SIGKILL', 'SIGSTOP', 'cut'] as const).map((failure) => ({
    fault: 21,
    brokers: BROKERS,
    services: { linkers: 2, writers: 2 },
    ...titleOf(role, failure),
    tried: `three brokers, two of each service: a ${role} is ${FAILURES[failure]} under load, and returns`,
    run: (trial: Trial) => failOne(trial, role, failure),
  })),
);
