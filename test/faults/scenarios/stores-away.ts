import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Scenario, Trial } from '../world/trial.ts';
import type { WireMode } from '../world/wire.ts';
import type { Store } from '../world/wires.ts';

const AWAY_MIN_MS = 1_000;
const AWAY_MAX_MS = 3_000;

/** Takes stores away from a gateway that has served already, and expects that its clients do not notice. */
async function expectIngestGoesOn(trial: Trial, stores: readonly Store[]): Promise<void> {
  const { world, random, ledger } = trial;
  const gateway = await trial.start('gateway');
  const traffic = trial.openTraffic([gateway]);
  await traffic.flows(random.integer(5, 20));
  const ways: WireMode[] = ['refuse', 'freeze', 'hold-answers'];
  for (const mode of random.shuffle(ways).slice(0, random.integer(1, 2))) {
    await Promise.all(stores.map((store) => world.wires[store].set(mode)));
    await delay(random.integer(AWAY_MIN_MS, AWAY_MAX_MS));
    await traffic.flows(10);
    await Promise.all(stores.map((store) => world.wires[store].set('open')));
    await delay(random.integer(0, 500));
  }
  await traffic.close();
  const refused = ledger.attempts.filter(({ status }) => status !== 200);
  assert.deepEqual(refused, [], `answers other than 200 while ${stores.join(' and ')} were away`);
  assert.ok(gateway.isAlive, 'the gateway must not exit');
}

export const registryAway: Scenario = {
  fault: 7,
  title: 'a schema registry that is refused or hangs stops no message',
  tried: 'registry refused, frozen or mute under load',
  run: (trial) => expectIngestGoesOn(trial, ['registry']),
};

export const limitStoreAway: Scenario = {
  fault: 7,
  title: 'a store of rate limits and keys that is refused or hangs stops no message of a key that was seen',
  tried: 'Redis refused, frozen or mute under load',
  run: (trial) => expectIngestGoesOn(trial, ['redis']),
};

export const registryAndLimitStoreAway: Scenario = {
  fault: 7,
  title: 'registry and store of rate limits away at once stop no message',
  tried: 'registry and Redis away together',
  run: (trial) => expectIngestGoesOn(trial, ['registry', 'redis']),
};
