import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { metricsOf, sumOf } from '../world/metrics.ts';
import { addReached, type Reached, toSeconds } from '../world/reached.ts';
import type { ServiceProcess } from '../world/service-process.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';
import type { WireMode } from '../world/wire.ts';

/** A gateway reads from the registry only when it starts, so a gateway started now must wait. */
async function provesRegistryAway(trial: Trial): Promise<void> {
  const newcomer = await trial.launch('gateway');
  await waitFor('a newcomer has the broker and waits for the registry', async () => {
    const answer = await fetch(`${newcomer.adminUrl}/readyz`, { headers: { connection: 'close' } });
    const { notReady = [] } = (await answer.json()) as { notReady?: string[] };
    return notReady.includes('schemas') && !notReady.includes('broker');
  });
}

/** The gateway's metrics show whether it can share its limits through Redis. */
async function provesRedisAway(_trial: Trial, gateway: ServiceProcess): Promise<void> {
  const isAlone = async () => sumOf(await metricsOf(gateway), 'playline_gateway_rate_limit_shared') === 0;
  await waitFor('the gateway keeps its limits alone', isAlone);
}

/** Wait for an effect that has no other cause than a store that is down. */
const PROOFS = { registry: provesRegistryAway, redis: provesRedisAway };

/** Takes stores away from a running gateway, proves that they are down, and asserts that clients do not notice. */
async function expectIngestContinues(trial: Trial, stores: readonly (keyof typeof PROOFS)[]): Promise<Reached> {
  const { world, random, ledger } = trial;
  const gateway = await trial.start('gateway');
  const traffic = trial.openTraffic([gateway]);
  await traffic.flows(random.integer(5, 20));
  const ways: WireMode[] = ['refuse', 'freeze', 'hold-answers'];
  let reached: Reached = {};
  for (const mode of random.shuffle(ways).slice(0, random.integer(1, 2))) {
    const beganAt = performance.now();
    await Promise.all(stores.map((store) => world.wires[store].set(mode)));
    await delay(random.integer(1_000, 3_000));
    await Promise.all(stores.map((store) => PROOFS[store](trial, gateway)));
    await traffic.flows(10);
    const taken = ledger.attempts.filter(({ beganAt: at, status }) => at > beganAt && status === 200).length;
    const awayS = toSeconds(performance.now() - beganAt);
    reached = addReached(reached, { [`times ${mode}`]: 1, 'batches accepted during it': taken, 'away s': awayS });
    await Promise.all(stores.map((store) => world.wires[store].set('open')));
    await delay(random.integer(0, 500));
  }
  await traffic.close();
  const refused = ledger.attempts.filter(({ status }) => status !== 200);
  assert.deepEqual(refused, [], `answers other than 200 while ${stores.join(' and ')} were away`);
  assert.ok(gateway.isAlive, 'the gateway must not exit');
  return reached;
}

const awayScenario = (title: string, tried: string, stores: readonly (keyof typeof PROOFS)[]): Scenario => {
  return { fault: 7, title, tried, run: (trial) => expectIngestContinues(trial, stores) };
};

export const registryAway = awayScenario(
  'no message is lost or refused while the schema registry is down or hangs',
  'registry refused, frozen or mute under load',
  ['registry'],
);

export const limitStoreAway = awayScenario(
  'no message of a known key is refused while the store of rate limits and keys is down or hangs',
  'Redis refused, frozen or mute under load',
  ['redis'],
);

export const registryAndLimitStoreAway = awayScenario(
  'no message is refused while the registry and the store of rate limits are down at the same time',
  'registry and Redis away together',
  ['registry', 'redis'],
);
