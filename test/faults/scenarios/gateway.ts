import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { smallMessage } from '@playline/testkit';
import { countRecords } from '../world/end-check.ts';
import { metricsOf, sumOf } from '../world/metrics.ts';
import { type Attempt, post } from '../world/post.ts';
import { addEffects, type Effects, toSeconds } from '../world/report.ts';
import type { ServiceProcess } from '../world/service-process.ts';
import type { ProxyMode } from '../world/store-proxy.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';

const LONG_DEADLINE = { PUBLISH_DEADLINE_MS: '20000' };

const batchCount = async (gateway: ServiceProcess) => sumOf(await metricsOf(gateway), 'playline_gateway_batches_total');

/** Sends batches that the broker cannot acknowledge, and waits until all of them are in flight. */
async function sendPending({ random, ledger, key }: Trial, gateway: ServiceProcess): Promise<Promise<Attempt>[]> {
  const agent = new Agent({ keepAlive: true });
  const before = await batchCount(gateway);
  const batches = Array.from({ length: random.integer(1, 3) }, () =>
    Array.from({ length: random.integer(1, 20) }, () => smallMessage('track', { messageId: ledger.newId() })),
  );
  const pending = batches.map(async (messages) => {
    const ids = messages.map(({ messageId }) => messageId);
    const attempt = await post({ url: gateway.url, key, body: JSON.stringify({ messages }), agent });
    ledger.record(ids, attempt);
    return attempt;
  });
  await waitFor('the batches are in flight', async () => (await batchCount(gateway)) === before + batches.length);
  return pending;
}

export const drainWithPendingResponses: Scenario = {
  fault: 12,
  title: 'a gateway that receives SIGTERM closes idle connections, responds to requests in flight and exits with 0',
  tried: 'gateway SIGTERM with batches in flight',
  run: async (trial) => {
    const { world, random } = trial;
    const gateway = await trial.start('gateway', LONG_DEADLINE);
    const traffic = trial.openTraffic([gateway]);
    await traffic.awaitBatches(random.integer(1, 10));
    await traffic.close();
    await world.proxies.kafka.set('hold-responses');
    const idle = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    idle.on('error', () => {}).resume();
    await once(idle, 'connect');
    const idleEnded = once(idle, 'close');
    const pending = await sendPending(trial, gateway);
    gateway.signal('SIGTERM');
    await idleEnded;
    await waitFor('new connections are refused', async () => {
      const { status, text } = await post({ url: gateway.url, key: trial.key, body: '' });
      return status === 0 && text.includes('ECONNREFUSED');
    });
    await delay(random.integer(0, 500));
    assert.ok(gateway.isAlive, 'the gateway waits for requests in flight');
    await world.proxies.kafka.set('open');
    for (const { status, connection } of await Promise.all(pending))
      assert.deepEqual({ status, connection }, { status: 200, connection: 'close' });
    assert.equal(await gateway.exited, 0, 'the gateway’s exit code');
    return { 'batches in flight at SIGTERM': pending.length };
  },
};

export const drainUnderLoad: Scenario = {
  fault: 12,
  tried: 'gateway SIGTERM at a random time under load',
  run: async (trial) => {
    const { world, random, ledger } = trial;
    const before = await countRecords(world);
    const remaining = await trial.start('gateway', LONG_DEADLINE);
    const draining = await trial.start('gateway', LONG_DEADLINE);
    // Enough clients to ensure that the draining gateway always has a batch in flight.
    const traffic = trial.openTraffic([remaining, draining], { clients: 12, pauseMaxMs: 5 });
    await traffic.awaitBatches(random.integer(10, 60));
    await delay(random.integer(0, 50));
    draining.signal('SIGTERM');
    assert.equal(await draining.exited, 0, 'the gateway’s exit code');
    await traffic.awaitBatches(5);
    await traffic.close();
    const refused = ledger.attempts.filter(({ status }) => status !== 200 && status !== 0);
    assert.deepEqual(refused, [], 'a draining gateway refuses connections and never responds with an error');
    // A duplicate record would mean that a published batch got no response.
    assert.equal((await countRecords(world)) - before, ledger.sent, 'number of records');
    // Only a draining gateway closes a connection after a response.
    const responses = ledger.attempts.filter(({ status, connection }) => status === 200 && connection === 'close');
    return { 'responses from the draining gateway': responses.length };
  },
};

export const gatewayKilledBeforeResponse: Scenario = {
  fault: 2,
  title:
    'every message has one row if a gateway is killed before the broker’s response arrives and clients resend batches',
  tried: 'gateway SIGKILL between the broker’s acknowledgement and the response',
  run: async (trial) => {
    const { world, random, ledger } = trial;
    const gateway = await trial.start('gateway');
    const before = trial.openTraffic([gateway]);
    await before.awaitBatches(random.integer(1, 10));
    await before.close();
    const [recordsBefore, acknowledged, sent] = [await countRecords(world), ledger.acknowledged, ledger.sent];
    // From now on, the broker stores batches, but its responses do not reach the gateway.
    await world.proxies.kafka.set('hold-responses');
    const successor = await trial.launch('gateway');
    const traffic = trial.openTraffic([gateway], { clients: random.integer(1, 12) });
    await waitFor('the broker has stored a batch', async () => (await countRecords(world)) > recordsBefore);
    await delay(random.integer(0, 300));
    gateway.signal('SIGKILL');
    await gateway.exited;
    assert.equal(ledger.acknowledged, acknowledged, 'no batch was acknowledged before the gateway was killed');
    traffic.redirect([successor]);
    await world.proxies.kafka.set('open');
    await traffic.awaitBatches(5);
    await traffic.close();
    const duplicates = (await countRecords(world)) - recordsBefore - (ledger.sent - sent);
    assert.ok(duplicates > 0, 'clients must have resent batches that the broker had stored');
    return { kills: 1, 'records stored without a response': duplicates };
  },
};

export const gatewayKilledUnderLoad: Scenario = {
  fault: 2,
  tried: 'gateway SIGKILL at random times, clients resend',
  run: async (trial) => {
    const { random, ledger } = trial;
    const survivor = await trial.start('gateway');
    let victim = await trial.start('gateway');
    const traffic = trial.openTraffic([survivor, victim], { pauseMaxMs: 10 });
    const kills = random.integer(1, 3);
    for (let kill = 0; kill < kills; kill++) {
      await traffic.awaitBatches(random.integer(5, 40));
      await delay(random.integer(0, 50));
      victim.signal('SIGKILL');
      await victim.exited;
      victim = await trial.start('gateway');
      traffic.redirect([survivor, victim]);
    }
    await traffic.awaitBatches(10);
    await traffic.close();
    // Requests that failed with ECONNREFUSED did not reach a gateway.
    const isInterrupted = ({ status, text }: Attempt) => status === 0 && !text.includes('ECONNREFUSED');
    return { kills, 'requests interrupted': ledger.attempts.filter(isInterrupted).length };
  },
};

/** A running gateway does not use the registry, so this starts a new gateway, which must wait for the registry. */
async function assertRegistryUnavailable(trial: Trial): Promise<void> {
  const newGateway = await trial.launch('gateway');
  await waitFor('a new gateway is connected to the broker and waits for the registry', async () => {
    const response = await fetch(`${newGateway.adminUrl}/readyz`, { headers: { connection: 'close' } });
    const { notReady = [] } = (await response.json()) as { notReady?: string[] };
    return notReady.includes('schemas') && !notReady.includes('broker');
  });
}

async function assertRedisUnavailable(_trial: Trial, gateway: ServiceProcess): Promise<void> {
  const isLocal = async () => sumOf(await metricsOf(gateway), 'playline_gateway_rate_limit_shared') === 0;
  await waitFor('the gateway applies local limits', isLocal);
}

const ASSERTIONS = { registry: assertRegistryUnavailable, redis: assertRedisUnavailable };

async function expectIngestContinues(trial: Trial, stores: readonly (keyof typeof ASSERTIONS)[]): Promise<Effects> {
  const { world, random, ledger } = trial;
  const gateway = await trial.start('gateway');
  const traffic = trial.openTraffic([gateway]);
  await traffic.awaitBatches(random.integer(5, 20));
  const modes: ProxyMode[] = ['refuse', 'freeze', 'hold-responses'];
  let effects: Effects = {};
  for (const mode of random.shuffle(modes).slice(0, random.integer(1, 2))) {
    const beganAt = performance.now();
    await Promise.all(stores.map((store) => world.proxies[store].set(mode)));
    await delay(random.integer(1_000, 3_000));
    await Promise.all(stores.map((store) => ASSERTIONS[store](trial, gateway)));
    await traffic.awaitBatches(10);
    const accepted = ledger.attempts.filter(({ beganAt: sentAt, status }) => sentAt > beganAt && status === 200).length;
    const outageS = toSeconds(performance.now() - beganAt);
    effects = addEffects(effects, {
      [`outages (${mode})`]: 1,
      'batches accepted during the outage': accepted,
      'unavailable s': outageS,
    });
    await Promise.all(stores.map((store) => world.proxies[store].set('open')));
    await delay(random.integer(0, 500));
  }
  await traffic.close();
  const refused = ledger.attempts.filter(({ status }) => status !== 200);
  assert.deepEqual(refused, [], `responses other than 200 while ${stores.join(' and ')} were unavailable`);
  assert.ok(gateway.isAlive, 'the gateway must not exit');
  return effects;
}

const outageScenario = (tried: string, ...stores: (keyof typeof ASSERTIONS)[]): Scenario => {
  return { fault: 7, tried, run: (trial) => expectIngestContinues(trial, stores) };
};

export const registryUnavailable = outageScenario(
  'registry refuses, freezes or does not respond under load',
  'registry',
);
export const limitStoreUnavailable = outageScenario('Redis refuses, freezes or does not respond under load', 'redis');
export const registryAndLimitStoreUnavailable: Scenario = {
  ...outageScenario('registry and Redis unavailable at the same time', 'registry', 'redis'),
  title: 'the gateway accepts every message while the registry and Redis are unavailable',
};
