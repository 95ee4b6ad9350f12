import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { smallMessage } from '@playline/testkit';
import { countRecords } from '../world/end-check.ts';
import { metricsOf, sumOf } from '../world/metrics.ts';
import { type Attempt, post } from '../world/post.ts';
import type { ServiceProcess } from '../world/service-process.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';

const PATIENT = { PUBLISH_DEADLINE_MS: '20000' };

/** Number of batches that a gateway has read and passed to the broker since it started. */
const countRead = async (gateway: ServiceProcess) => sumOf(await metricsOf(gateway), 'playline_gateway_batches_total');

/** Sends batches that the gateway has accepted and the broker has not acknowledged. Waits until each is in flight. */
async function holdBatches({ random, ledger, key }: Trial, gateway: ServiceProcess): Promise<Promise<Attempt>[]> {
  const agent = new Agent({ keepAlive: true });
  const before = await countRead(gateway);
  const batches = Array.from({ length: random.integer(1, 3) }, () =>
    Array.from({ length: random.integer(1, 20) }, () => smallMessage('track', { messageId: ledger.newId() })),
  );
  const open = batches.map(async (messages) => {
    const ids = messages.map(({ messageId }) => messageId);
    const attempt = await post({ url: gateway.url, key, body: JSON.stringify({ messages }), agent });
    ledger.note(ids, attempt);
    return attempt;
  });
  await waitFor('the gateway holds the batches', async () => (await countRead(gateway)) === before + batches.length);
  return open;
}

export const drainWithHeldAnswers: Scenario = {
  fault: 12,
  title: 'a gateway that gets SIGTERM closes idle connections, answers requests in flight, and exits with 0',
  tried: 'gateway SIGTERM with batches in flight',
  run: async (trial) => {
    const { world, random } = trial;
    const gateway = await trial.start('gateway', PATIENT);
    const traffic = trial.openTraffic([gateway]);
    await traffic.flows(random.integer(1, 10));
    await traffic.close();
    await world.wires.kafka.set('hold-answers');
    const idle = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    idle.on('error', () => {}).resume();
    await once(idle, 'connect');
    const idleEnded = once(idle, 'close');
    const open = await holdBatches(trial, gateway);
    gateway.signal('SIGTERM');
    await idleEnded;
    await waitFor('new connections are refused', async () => {
      const { status, text } = await post({ url: gateway.url, key: trial.key, body: '' });
      return status === 0 && text.includes('ECONNREFUSED');
    });
    await delay(random.integer(0, 500));
    assert.ok(gateway.isAlive, 'a process with requests in flight waits for them');
    await world.wires.kafka.set('open');
    for (const { status, connection } of await Promise.all(open))
      assert.deepEqual({ status, connection }, { status: 200, connection: 'close' });
    assert.equal(await gateway.exited, 0, 'exit code of the gateway');
    return { 'batches in flight at SIGTERM': open.length };
  },
};

export const drainUnderLoad: Scenario = {
  fault: 12,
  title: 'a gateway that gets SIGTERM under load answers every batch that it has published',
  tried: 'gateway SIGTERM at a random moment under load',
  run: async (trial) => {
    const { world, random, ledger } = trial;
    const before = await countRecords(world);
    const stays = await trial.start('gateway', PATIENT);
    const goes = await trial.start('gateway', PATIENT);
    // Enough clients that one of them always has a batch in flight at the gateway that stops.
    const traffic = trial.openTraffic([stays, goes], { clients: 12, restMaxMs: 5 });
    await traffic.flows(random.integer(10, 60));
    await delay(random.integer(0, 50));
    goes.signal('SIGTERM');
    assert.equal(await goes.exited, 0, 'exit code of the gateway');
    await traffic.flows(5);
    await traffic.close();
    const refused = ledger.attempts.filter(({ status }) => status !== 200 && status !== 0);
    assert.deepEqual(refused, [], 'a gateway that drains refuses by its port, never by a status');
    // A copy would mean that a batch was published but not answered.
    assert.equal((await countRecords(world)) - before, ledger.sent, 'records, and messages that were sent');
    // Only a draining gateway closes a connection after an answer.
    const drained = ledger.attempts.filter(({ status, connection }) => status === 200 && connection === 'close');
    return { 'answers of the draining gateway': drained.length };
  },
};
