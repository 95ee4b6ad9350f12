import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import { openBrokers, type PartitionState } from '../world/brokers.ts';
import type { Reached } from '../world/reached.ts';
import { isStopped } from '../world/service-process.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';

/** With three brokers, one may be down while two have every acknowledged record. */
export const BROKERS = 3;
const IDS = [1, 2, 3];
type Cluster = Awaited<ReturnType<typeof openCluster>>;

async function whole({ partitions }: Cluster): Promise<void> {
  await waitFor('every replica is in sync', async () => {
    const states = await partitions();
    return states.length > 0 && states.every(({ leader, inSync }) => leader > 0 && inSync.length === BROKERS);
  });
}

async function stopped<T>(pids: readonly number[], during: () => Promise<T>): Promise<T> {
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  try {
    for (const pid of pids) await waitFor('the broker is stopped', () => isStopped(pid));
    return await during();
  } finally {
    for (const pid of pids) process.kill(pid, 'SIGCONT');
  }
}

/** Gives leadership to other running brokers. The old leader answers requests that wait for their replicas. */
async function electOthers({ trial: { random }, brokers, topic, partitions }: Cluster): Promise<Reached> {
  let moved = 0;
  // In quick succession, so that some elections meet requests in flight.
  for (let left = random.integer(4, 10); left > 0; left--) {
    const before = await partitions();
    const leaders = new Map(before.map(({ partition }) => [partition, random.pick(IDS)]));
    await brokers.prefer(topic, leaders);
    await brokers.elect(topic, [...leaders.keys()]);
    const after = await partitions();
    moved += after.filter(({ leader }, index) => leader !== before[index]?.leader).length;
    await delay(random.integer(0, 300));
  }
  return { 'leaders elected': moved };
}

/** Freezes a broker. It wakes up with requests for partitions that it still believes to lead. */
async function stopOne(cluster: Cluster): Promise<Reached> {
  const { trial, traffic, partitions, pidOf } = cluster;
  // Not the controller, because without it there is no election.
  const victim = trial.random.pick([2, 3]);
  const led = (await partitions()).filter(({ leader }) => leader === victim).length;
  await stopped([await pidOf(victim)], async () => {
    const isReplaced = ({ leader }: PartitionState) => leader > 0 && leader !== victim;
    await waitFor('others lead', async () => (await partitions(1)).every(isReplaced));
    await traffic.flows(trial.random.integer(1, 10));
  });
  await whole(cluster);
  return { 'leaders taken from a broker that was stopped': led };
}

async function killOne(cluster: Cluster): Promise<Reached> {
  const { trial, traffic, pidOf } = cluster;
  const victim = trial.random.pick(IDS);
  const pid = await pidOf(victim);
  const led = (await cluster.partitions(IDS.find((id) => id !== victim))).filter(
    ({ leader }) => leader === victim,
  ).length;
  process.kill(pid, 'SIGKILL');
  await waitFor('the broker is started again', async () => (await pidOf(victim)) !== pid);
  await traffic.flows(trial.random.integer(1, 10));
  await whole(cluster);
  return { 'leaders taken from a broker that was killed': led };
}

async function starve(cluster: Cluster): Promise<Reached> {
  const { trial, partitions, pidOf } = cluster;
  const { attempts } = trial.ledger;
  const refused = await stopped([await pidOf(2), await pidOf(3)], async () => {
    const isAlone = ({ leader, inSync }: PartitionState) => leader === 1 && inSync.length === 1;
    await waitFor('one replica is in sync', async () => (await partitions(1)).every(isAlone));
    const from = performance.now();
    const behind = () => attempts.filter(({ beganAt, endedAt }) => beganAt > from && endedAt > 0);
    await waitFor('a request is refused', () => behind().some(({ status }) => status !== 200));
    await delay(1_500);
    const taken = behind().filter(({ status }) => status === 200).length;
    assert.equal(taken, 0, 'requests were answered 200 while one replica was in sync');
    return behind().length;
  });
  await whole(cluster);
  return { 'requests refused for want of replicas': refused };
}

async function openCluster(trial: Trial) {
  const { world } = trial;
  const traffic = trial.openTraffic([await trial.start('gateway')]);
  const brokers = openBrokers(world.stack.file.kafka);
  const topic = world.deployment.topicPrefix + TOPICS.messages.name;
  const partitions = (broker = 1) => brokers.partitionsOf(topic, broker);
  return { trial, traffic, brokers, topic, partitions, pidOf: (id: number) => world.brokerPid(id) };
}

export const leadersMove: Scenario = {
  fault: 15,
  brokers: BROKERS,
  title: 'leaders that are elected, stopped and killed under load, with too few replicas, lose and double nothing',
  tried: 'three brokers: leaders elected elsewhere; one SIGSTOP or SIGKILL, or two are frozen; elected again',
  run: async (trial) => {
    const cluster = await openCluster(trial);
    try {
      const { traffic } = cluster;
      await traffic.flows(trial.random.integer(5, 30));
      const first = await electOthers(cluster);
      const cut = await trial.random.pick([stopOne, killOne, starve])(cluster);
      await traffic.flows(5);
      const second = await electOthers(cluster);
      await traffic.flows(10);
      await traffic.close();
      await whole(cluster);
      return { ...cut, 'leaders elected': first['leaders elected']! + second['leaders elected']! };
    } finally {
      await cluster.brokers.close();
    }
  },
};
