import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import { openProducer, readTopic } from '@playline/stream/kafka';
import kafkajs from 'kafkajs';
import { type Brokers, openBrokers, type PartitionState } from '../world/brokers.ts';
import type { Effects } from '../world/report.ts';
import { isStopped } from '../world/service-process.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';

/** With three brokers, two brokers still have every acknowledged record while the third is down. */
export const BROKERS = 3;
export const IDS = [1, 2, 3];
type Cluster = Awaited<ReturnType<typeof openCluster>>;

export async function awaitReplicas({ partitions }: Pick<Cluster, 'partitions'>): Promise<void> {
  await waitFor('every replica is in sync', async () => {
    const states = await partitions();
    return states.length > 0 && states.every(({ leader, inSync }) => leader > 0 && inSync.length === BROKERS);
  });
}

async function whileStopped<T>(pids: readonly number[], during: () => Promise<T>): Promise<T> {
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  try {
    for (const pid of pids) await waitFor('the broker is stopped', () => isStopped(pid));
    return await during();
  } finally {
    for (const pid of pids) process.kill(pid, 'SIGCONT');
  }
}

async function moveLeaders({ trial: { random }, brokers, topic, partitions }: Cluster): Promise<Effects> {
  let moved = 0;
  // Elects leaders in quick succession, so that some elections happen while requests are in flight.
  for (let rounds = random.integer(4, 10); rounds > 0; rounds--) {
    const before = await partitions();
    const leaders = new Map(before.map(({ partition }) => [partition, random.pick(IDS)]));
    await brokers.setPreferredLeaders(topic, leaders);
    await brokers.elect(topic, [...leaders.keys()]);
    const after = await partitions();
    moved += after.filter(({ leader }, index) => leader !== before[index]?.leader).length;
    await delay(random.integer(0, 300));
  }
  return { 'leaders elected': moved };
}

/** Freezes a broker. After it resumes, it still handles requests for partitions that it no longer leads. */
async function stopOne(cluster: Cluster): Promise<Effects> {
  const { trial, traffic, partitions, pidOf } = cluster;
  const victim = trial.random.pick(IDS);
  const led = (await partitions()).filter(({ leader }) => leader === victim).length;
  await whileStopped([await pidOf(victim)], async () => {
    const isReplaced = ({ leader }: PartitionState) => leader > 0 && leader !== victim;
    await waitFor('the remaining brokers lead all partitions', async () => (await partitions()).every(isReplaced));
    await traffic.awaitBatches(trial.random.integer(1, 10));
  });
  await awaitReplicas(cluster);
  return { 'partitions led by the stopped broker': led };
}

async function killOne(cluster: Cluster): Promise<Effects> {
  const { trial, traffic, pidOf } = cluster;
  const victim = trial.random.pick(IDS);
  const pid = await pidOf(victim);
  const led = (await cluster.partitions()).filter(({ leader }) => leader === victim).length;
  process.kill(pid, 'SIGKILL');
  await waitFor('the broker is restarted', async () => (await pidOf(victim)) !== pid);
  await traffic.awaitBatches(trial.random.integer(1, 10));
  await awaitReplicas(cluster);
  return { 'partitions led by the killed broker': led };
}

/** Freezes two brokers. Without their votes no controller is active, so the third broker waits for its followers. */
async function stopFollowers(cluster: Cluster): Promise<Effects> {
  const { trial, pidOf } = cluster;
  const { attempts } = trial.ledger;
  const refused = await whileStopped([await pidOf(2), await pidOf(3)], async () => {
    const from = performance.now();
    const completed = () => attempts.filter(({ beganAt, endedAt }) => beganAt > from && endedAt > 0);
    await waitFor('a request is refused', () => completed().some(({ status }) => status !== 200));
    await delay(1_500);
    const accepted = completed().filter(({ status }) => status === 200).length;
    assert.equal(accepted, 0, 'number of accepted requests while only one broker was running');
    return completed().length;
  });
  await awaitReplicas(cluster);
  return { 'requests refused because of too few replicas': refused };
}

async function openCluster(trial: Trial) {
  const { world } = trial;
  const traffic = trial.openTraffic([await trial.start('gateway')]);
  const brokers = openBrokers(world.stack.file.kafka);
  const topic = world.deployment.topicPrefix + TOPICS.messages.name;
  const partitions = () => brokers.partitionsOf(topic);
  return { trial, traffic, brokers, topic, partitions, pidOf: (id: number) => world.brokerPid(id) };
}

export const leadersMove: Scenario = {
  fault: 15,
  brokers: BROKERS,
  tried: 'three brokers: new leaders elected; one broker SIGSTOP or SIGKILL, or two frozen; new leaders elected again',
  run: async (trial) => {
    const cluster = await openCluster(trial);
    try {
      const { traffic } = cluster;
      await traffic.awaitBatches(trial.random.integer(5, 30));
      const first = await moveLeaders(cluster);
      const outage = await trial.random.pick([stopOne, killOne, stopFollowers])(cluster);
      await traffic.awaitBatches(5);
      const second = await moveLeaders(cluster);
      await traffic.awaitBatches(10);
      await traffic.close();
      await awaitReplicas(cluster);
      return { ...outage, 'leaders elected': first['leaders elected']! + second['leaders elected']! };
    } finally {
      await cluster.brokers.close();
    }
  },
};

/** Short enough that the producer gives up before the brokers remove the stopped follower from the in-sync set. */
const DELIVERY_TIMEOUT_MS = 1_000;

/** Creates a topic with one partition: `leader` leads, `successor` is in sync, and `follower` will be stopped. */
async function createTopic({ world, seed, random }: Trial, brokers: Brokers) {
  const controller = await brokers.controller();
  // Excludes the controller, which elections need.
  const follower = random.pick(IDS.filter((id) => id !== controller));
  const [leader = 0, successor = 0] = random.shuffle(IDS.filter((id) => id !== follower));
  const topic = `${world.deployment.topicPrefix}leader-replaced-${seed}-${process.hrtime.bigint()}`;
  const { Kafka, logLevel } = kafkajs;
  const admin = new Kafka({ brokers: world.stack.file.kafka, logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  const replicaAssignment = [{ partition: 0, replicas: [leader, successor, follower] }];
  const configEntries = [{ name: 'min.insync.replicas', value: '2' }];
  await admin.createTopics({ topics: [{ topic, replicaAssignment, configEntries }] });
  await admin.disconnect();
  return { topic, leader, successor, follower };
}

// The leader appends a record and waits for a stopped follower until the producer gives up. The other in-sync replica,
// which has the record, becomes the leader. The producer must not mistake the record for its next record.
async function replaceLeader(trial: Trial) {
  const brokers = openBrokers(trial.world.stack.file.kafka);
  const { topic, leader, successor, follower } = await createTopic(trial, brokers);
  const options = { brokers: trial.world.stack.file.kafka, clientId: 'faults', deliveryTimeoutMs: DELIVERY_TIMEOUT_MS };
  const producer = await openProducer(options);
  const send = (text: string) => producer.sendForOffset({ topic, key: null, value: Buffer.from(text) });
  const isLeader = (id: number) => async () =>
    (await brokers.partitionsOf(topic, successor)).every((each) => each.leader === id);
  try {
    await waitFor('the topic has the expected leader', isLeader(leader));
    await waitFor('a record is stored', () => send('before').then(() => true));
    await brokers.setPreferredLeaders(topic, new Map([[0, successor]]));
    const pid = await trial.world.brokerPid(follower);
    process.kill(pid, 'SIGSTOP');
    try {
      await waitFor('the broker is stopped', () => isStopped(pid));
      await assert.rejects(send('abandoned'), { code: 'DELIVERY_TIMEOUT' });
      await brokers.elect(topic, [0]);
      await waitFor('the successor is the leader', isLeader(successor));
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    const sent = await waitFor('the next record is acknowledged', () => send('after'));
    const records = await readTopic({ brokers: trial.world.stack.file.kafka, topic });
    const values = records.map(({ value }) => String(value));
    assert.equal(values[sent.offset], 'after', `acknowledged at offset ${sent.offset}; the log contains ${values}`);
    // The fault took effect if the new leader has the record on which the producer gave up.
    return { 'records appended before the producer gave up': values.filter((value) => value === 'abandoned').length };
  } finally {
    await producer.close();
    await brokers.close();
  }
}

export const leaderReplacedWhileWaiting: Scenario = {
  fault: 15,
  brokers: BROKERS,
  title: 'a producer that gave up on an appended record does not mistake the record for its next record',
  tried: 'three brokers: a leader is replaced after the producer gave up on a record that waits for a replica',
  run: replaceLeader,
};
