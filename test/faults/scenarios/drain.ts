import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { createMessage } from '../world/messages.ts';
import { type Attempt, post } from '../world/post.ts';
import type { ServiceProcess } from '../world/service-process.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';
import { countRecords } from './log-growth.ts';

/** No machine is so slow that a request meets it: what is refused here is refused for another reason. */
const PATIENT = { PUBLISH_DEADLINE_MS: '20000' };

async function bytesInFlight({ adminUrl }: ServiceProcess): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  return Number(/^gateway_bytes_in_flight(?:\{[^}]*\})? (\S+)$/m.exec(text)?.[1] ?? 0);
}

/** Batches that the gateway has taken and the broker has not acknowledged: one by one, so that each is really there. */
async function holdBatches(trial: Trial, gateway: ServiceProcess): Promise<Promise<Attempt>[]> {
  const { random, ledger, key } = trial;
  const agent = new Agent({ keepAlive: true });
  const open: Promise<Attempt>[] = [];
  for (let count = random.integer(1, 6); count > 0; count--) {
    const held = await bytesInFlight(gateway);
    const messages = Array.from({ length: random.integer(1, 20) }, () => createMessage(random));
    const ids = messages.map(({ messageId }) => messageId);
    ledger.send(ids);
    const answer = post({ url: gateway.url, key, body: JSON.stringify({ messages }), agent });
    open.push(
      answer.then((attempt) => {
        ledger.note(ids, attempt);
        return attempt;
      }),
    );
    await waitFor('the gateway holds the batch', async () => (await bytesInFlight(gateway)) > held);
  }
  return open;
}

/** A connection that has sent nothing yet. */
async function openIdle({ url }: ServiceProcess): Promise<{ socket: Socket; ended: Promise<unknown> }> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => {}).resume();
  await once(socket, 'connect');
  return { socket, ended: once(socket, 'close') };
}

export const drainWithHeldAnswers: Scenario = {
  fault: 12,
  title: 'SIGTERM: idle connections are ended, what is in flight is answered, and the process exits with 0',
  tried: 'gateway SIGTERM with batches in flight',
  run: async (trial) => {
    const { world, random } = trial;
    const gateway = await trial.start('gateway', PATIENT);
    const traffic = trial.openTraffic([gateway]);
    await traffic.flows(random.integer(1, 10));
    await traffic.close();
    await world.wires.kafka.set('hold-answers');
    const idle = await openIdle(gateway);
    const open = await holdBatches(trial, gateway);
    gateway.signal('SIGTERM');
    await idle.ended;
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
  },
};

export const drainUnderLoad: Scenario = {
  fault: 12,
  title: 'SIGTERM under load: whatever a gateway has published it has also answered, and the others take the rest',
  tried: 'gateway SIGTERM at a random moment under load',
  run: async (trial) => {
    const { world, random, ledger } = trial;
    const before = await countRecords(world);
    const stays = await trial.start('gateway', PATIENT);
    const goes = await trial.start('gateway', PATIENT);
    const traffic = trial.openTraffic([stays, goes], { restMaxMs: 5 });
    await traffic.flows(random.integer(10, 60));
    await delay(random.integer(0, 50));
    goes.signal('SIGTERM');
    assert.equal(await goes.exited, 0, 'exit code of the gateway');
    await traffic.flows(5);
    await traffic.close();
    const refused = ledger.attempts.filter(({ status }) => status !== 200 && status !== 0);
    assert.deepEqual(refused, [], 'a gateway that drains refuses by its port, never by a status');
    // Nothing else could have made a client resend what was stored: a copy would be a batch published and not answered.
    assert.equal((await countRecords(world)) - before, ledger.sent.size, 'records, and messages that were sent');
  },
};
