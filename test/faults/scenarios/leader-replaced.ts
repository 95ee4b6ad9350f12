import assert from 'node:assert/strict';
import { openProducer, readTopic } from '@playline/stream/kafka';
import kafkajs from 'kafkajs';
import { openBrokers } from '../world/brokers.ts';
import { isStopped } from '../world/service-process.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';
import { BROKERS } from './leaders.ts';

/** The producer gives the first record up before brokers drop a stopped follower, while the leader still waits. */
const DELIVERY_TIMEOUT_MS = 1_000;

/** Creates a topic of one partition. `leader` leads it, `heir` is in sync, and the leader will wait for `straggler`. */
async function createTopic({ world, seed, random }: Trial) {
  // Not the controller, because without it there is no election.
  const straggler = random.pick([2, 3]);
  const [leader = 0, heir = 0] = random.pick([
    [1, 5 - straggler],
    [5 - straggler, 1],
  ]);
  const topic = `${world.deployment.topicPrefix}leader-replaced-${seed}-${process.hrtime.bigint()}`;
  const { Kafka, logLevel } = kafkajs;
  const admin = new Kafka({ brokers: world.stack.file.kafka, logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  const replicaAssignment = [{ partition: 0, replicas: [leader, heir, straggler] }];
  const configEntries = [{ name: 'min.insync.replicas', value: '2' }];
  await admin.createTopics({ topics: [{ topic, replicaAssignment, configEntries }] });
  await admin.disconnect();
  return { topic, leader, heir, straggler };
}

/**
 * The leader has appended a record and waits for a stopped follower. The producer gives up, and another replica, which
 * has the record, becomes the leader. The next record must not be confused with that one.
 */
async function replaceLeader(trial: Trial) {
  const { topic, leader, heir, straggler } = await createTopic(trial);
  const brokers = openBrokers(trial.world.stack.file.kafka);
  const options = { brokers: trial.world.stack.file.kafka, clientId: 'faults', deliveryTimeoutMs: DELIVERY_TIMEOUT_MS };
  const producer = await openProducer(options);
  const send = (text: string) => producer.sendForOffset({ topic, key: null, value: Buffer.from(text) });
  const leads = (id: number) => async () =>
    (await brokers.partitionsOf(topic, heir)).every((each) => each.leader === id);
  try {
    await waitFor('the topic has its leader', leads(leader));
    await waitFor('a record is stored', () => send('before').then(() => true));
    await brokers.prefer(topic, new Map([[0, heir]]));
    const pid = await trial.world.brokerPid(straggler);
    process.kill(pid, 'SIGSTOP');
    try {
      await waitFor('the broker is stopped', () => isStopped(pid));
      await assert.rejects(send('given up'), { code: 'DELIVERY_TIMEOUT' });
      await brokers.elect(topic, [0]);
      await waitFor('the heir leads', leads(heir));
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    const sent = await waitFor('the next record is acknowledged', () => send('after'));
    const records = await readTopic({ brokers: trial.world.stack.file.kafka, topic });
    const values = records.map(({ value }) => String(value));
    assert.equal(values[sent.offset], 'after', `acknowledged at offset ${sent.offset}, the log holds ${values}`);
    // The fault takes effect when the new leader has a record for which the old one returned an error.
    return { 'records refused behind their append': values.filter((value) => value === 'given up').length };
  } finally {
    await producer.close();
    await brokers.close();
  }
}

export const leaderReplacedWhileWaiting: Scenario = {
  fault: 15,
  brokers: BROKERS,
  title: 'a record that was given up but appended by a replaced leader is never confused with the next record',
  tried: 'three brokers: a leader is replaced while a record waits for a replica, and no client for the record',
  run: replaceLeader,
};
