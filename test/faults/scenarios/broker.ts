import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { post } from '../world/post.ts';
import type { Reached } from '../world/reached.ts';
import { isStopped, type ServiceProcess } from '../world/service-process.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';
import { watchOutage } from './outage.ts';

/** An outage lasts up to this long after the first refusal. */
const FURTHER_MAX_MS = 3_000;

async function expectRecovery(gateway: ServiceProcess): Promise<void> {
  await waitFor('the gateway is ready again', () => gateway.isReady());
  assert.ok(gateway.isAlive, 'the gateway recovers without being started again');
}

export const brokerAbsent: Scenario = {
  fault: 1,
  title: 'a gateway that starts without a broker answers 500, keeps running, and accepts messages once a broker is up',
  tried: 'no broker from the start of the gateway',
  run: async (trial) => {
    const { world, random, ledger } = trial;
    await world.wires.kafka.set(random.pick(['refuse', 'freeze'] as const));
    const gateway = await trial.launch('gateway');
    await waitFor('the gateway lives', async () => (await fetch(`${gateway.adminUrl}/livez`)).ok);
    await waitFor('it answers', async () => (await post({ url: gateway.url, key: trial.key, body: '' })).status > 0);
    assert.equal(await gateway.isReady(), false, 'a gateway without a broker is not ready');
    const outage = watchOutage(gateway, ledger);
    const traffic = trial.openTraffic([gateway]);
    await outage.refused();
    await delay(random.integer(0, FURTHER_MAX_MS));
    const reached = outage.check();
    assert.equal(ledger.acknowledged, 0, 'nothing is acknowledged without a broker');
    await world.wires.kafka.set('open');
    await traffic.flows(10);
    await expectRecovery(gateway);
    await traffic.close();
    return reached;
  },
};

async function tryOutage(trial: Trial, away: () => Promise<void>, comeBack: () => Promise<void>): Promise<Reached> {
  const { random, ledger } = trial;
  const gateway = await trial.start('gateway');
  const traffic = trial.openTraffic([gateway]);
  await traffic.flows(random.integer(5, 30));
  let reached: Reached;
  try {
    await away();
    const outage = watchOutage(gateway, ledger);
    await outage.refused();
    await delay(random.integer(0, FURTHER_MAX_MS));
    reached = outage.check();
  } finally {
    await comeBack();
  }
  await traffic.flows(10);
  await expectRecovery(gateway);
  await traffic.close();
  return reached;
}

export const brokerStopped: Scenario = {
  fault: 1,
  title: 'a gateway whose broker is paused answers 500 or 429 within 3 s, and no 2xx until the broker continues',
  tried: 'broker SIGSTOP under load, SIGCONT',
  run: async (trial) => {
    const broker = await trial.world.storePid('kafka');
    const stop = async () => {
      process.kill(broker, 'SIGSTOP');
      await waitFor('the broker is stopped', () => isStopped(broker));
    };
    return await tryOutage(trial, stop, async () => void process.kill(broker, 'SIGCONT'));
  },
};

export const brokerKilled: Scenario = {
  fault: 1,
  title: 'nothing acknowledged is lost when a broker is killed during batches and comes back',
  tried: 'broker SIGKILL under load, started again',
  run: async (trial) => {
    const { stack, wires } = trial.world;
    const broker = await trial.world.storePid('kafka');
    // The stack restarts the broker. The wire hides that until the trial sets it to open.
    const kill = async () => {
      await wires.kafka.set(trial.random.pick(['refuse', 'freeze'] as const));
      process.kill(broker, 'SIGKILL');
      await waitFor('the broker is gone', () => stack.file.processes.kafka !== broker);
    };
    return { kills: 1, ...(await tryOutage(trial, kill, () => wires.kafka.set('open'))) };
  },
};
