import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { metricsOf, sumOf } from '../world/metrics.ts';
import { addReached, type Reached, toSeconds } from '../world/reached.ts';
import type { ServiceProcess } from '../world/service-process.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';
import type { WireMode } from '../world/wire.ts';
import type { Store } from '../world/wires.ts';

const AWAY_MIN_MS = 1_000;
const AWAY_MAX_MS = 3_000;

/** Proves that gateways cannot reach a store: waits for an effect that has no other cause. */
type Proof = (trial: Trial, gateway: ServiceProcess) => Promise<void>;

/** A gateway reads from the registry only when it starts. So a gateway started now must wait. */
const provesRegistryAway: Proof = async (trial) => {
  const newcomer = await trial.launch('gateway');
  await waitFor('a newcomer has the broker and waits for the registry', async () => {
    const answer = await fetch(`${newcomer.adminUrl}/readyz`, { headers: { connection: 'close' } });
    const { notReady = [] } = (await answer.json()) as { notReady?: string[] };
    return notReady.includes('schemas') && !notReady.includes('broker');
  });
};

/** The gateway's metrics show whether it can share its limits through Redis. */
const provesRedisAway: Proof = async (_trial, gateway) =>
  void (await waitFor(
    'the gateway keeps its limits alone',
    async () => sumOf(await metricsOf(gateway), 'playline_gateway_rate_limit_shared') === 0,
  ));

const PROOFS: Readonly<Partial<Record<Store, Proof>>> = { registry: provesRegistryAway, redis: provesRedisAway };

/** Takes stores away from a running gateway, proves that they are down, and asserts that clients do not notice. */
async function expectIngestContinues(trial: Trial, stores: readonly Store[]): Promise<Reached> {
  const { world, random, ledger } = trial;
  const gateway = await trial.start('gateway');
  const traffic = trial.openTraffic([gateway]);
  await traffic.flows(random.integer(5, 20));
  const ways: WireMode[] = ['refuse', 'freeze', 'hold-answers'];
  let reached: Reached = {};
  for (const mode of random.shuffle(ways).slice(0, random.integer(1, 2))) {
    const beganAt = performance.now();
    await Promise.all(stores.map((store) => world.wires[store].set(mode)));
    await delay(random.integer(AWAY_MIN_MS, AWAY_MAX_MS));
    await Promise.all(stores.map((store) => PROOFS[store]?.(trial, gateway)));
    await traffic.flows(10);
    const taken = ledger.attempts.filter(({ beganAt: at, status }) => at > beganAt && status === 200).length;
    const awayMs = performance.now() - beganAt;
    reached = addReached(reached, {
      [`times ${mode}`]: 1,
      'batches accepted during it': taken,
      'away s': toSeconds(awayMs),
    });
    await Promise.all(stores.map((store) => world.wires[store].set('open')));
    await delay(random.integer(0, 500));
  }
  await traffic.close();
  const refused = ledger.attempts.filter(({ status }) => status !== 200);
  assert.deepEqual(refused, [], `answers other than 200 while ${stores.join(' and ')} were away`);
  assert.ok(gateway.isAlive, 'the gateway must not exit');
  return reached;
}

export const registryAway: Scenario = {
  fault: 7,
  title: 'no message is lost or refused while the schema registry is down or hangs',
  tried: 'registry refused, frozen or mute under load',
  run: (trial) => expectIngestContinues(trial, ['registry']),
};

export const limitStoreAway: Scenario = {
  fault: 7,
  title: 'no message of a known key is refused while the store of rate limits and keys is down or hangs',
  tried: 'Redis refused, frozen or mute under load',
  run: (trial) => expectIngestContinues(trial, ['redis']),
};

export const registryAndLimitStoreAway: Scenario = {
  fault: 7,
  title: 'no message is refused while the registry and the store of rate limits are down at the same time',
  tried: 'registry and Redis away together',
  run: (trial) => expectIngestContinues(trial, ['registry', 'redis']),
};
