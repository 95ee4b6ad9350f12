import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import { Redis } from 'ioredis';
import { createPersons, type Persons } from './linker-persons.ts';
import { countRecords, settle } from './world/end-check.ts';
import { metricsOf, sumOf } from './world/metrics.ts';
import { operate } from './world/operate.ts';
import { toSeconds } from './world/reached.ts';
import type { ServiceProcess } from './world/service-process.ts';
import type { Scenario, Trial } from './world/trial.ts';
import { waitFor } from './world/wait.ts';
import type { World } from './world/world.ts';

async function committedFacts(world: World): Promise<number> {
  const topic = world.deployment.topicPrefix + TOPICS.identityLinks.name;
  const offsets = await world.log.committed(world.groupOf('identity-linker'), topic);
  return [...offsets.values()].reduce((total, offset) => total + offset, 0);
}

const loggedFacts = (world: World) => countRecords(world, TOPICS.identityLinks.name);
const loggedDecisions = (world: World) => countRecords(world, TOPICS.identityDecisions.name);

const linkerOf = ({ crew }: Trial) => crew.find(({ service }) => service === 'identity-linker')!;

export const redisAwayFromLinker: Scenario = {
  fault: 6,
  title: 'no message is refused while Redis is down; links wait, and are applied when it is back',
  tried: 'Redis refused or frozen while link facts come in',
  run: async (trial) => {
    const { world, random, key } = trial;
    const gateway = await trial.start('gateway');
    const persons = createPersons(trial, () => ({ gateway, key }));
    const linker = linkerOf(trial);
    const traffic = trial.openTraffic([gateway]);
    await persons.identify('before');
    await traffic.flows(random.integer(5, 15));
    await world.wires.redis.set(random.pick(['refuse', 'freeze'] as const));
    const beganAt = performance.now();
    const before = await retriesOf(linker);
    await waitFor('the linker is not ready', async () => !(await linker.isReady()));
    await traffic.flows(10);
    await persons.identify('during');
    await persons.alias('before');
    const waiting = await waitFor('links wait', async () =>
      Math.max(0, (await loggedFacts(world)) - (await committedFacts(world))),
    );
    const repeated = await waitFor('the linker has tried', async () => Math.max(0, (await retriesOf(linker)) - before));
    await delay(random.integer(0, 2_000));
    const awayMs = performance.now() - beganAt;
    await world.wires.redis.set('open');
    await waitFor('the linker is ready again', () => linker.isReady());
    await traffic.flows(5);
    await traffic.close();
    await persons.assertWhole(['before'], 3);
    await persons.assertWhole(['during'], 2);
    return { 'link facts waited': waiting, 'attempts repeated': repeated, 'Redis away s': toSeconds(awayMs) };
  },
};

async function rebuild(world: World): Promise<void> {
  const settings = { REDIS_URL: world.stack.file.redis };
  const groups = ['--linker-group', world.groupOf('identity-linker'), '--writer-group', world.groupOf('event-writer')];
  const { code, stdout, stderr } = await operate(world, ['identity', 'rebuild', ...groups], { settings, maxMs: 0 });
  if (code !== 0) throw new Error(`identity rebuild ended with ${code}:\n${stdout}${stderr}`);
}

/** Asserts that no link fact is decided while the graph is empty. @returns how often the linker refused them */
async function expectRefusal(trial: Trial, persons: Persons, names: readonly string[]): Promise<number> {
  const { world } = trial;
  const linker = linkerOf(trial);
  await waitFor('the linker is not ready', async () => !(await linker.isReady()));
  const [committed, decisions] = [await committedFacts(world), await loggedDecisions(world)];
  // The linker also repeats attempts of earlier trials, so only additional ones count.
  const retried = await retriesOf(linker);
  for (const name of names) await persons.alias(name);
  await persons.identify('empty');
  const refused = await waitFor('the linker has tried', async () => Math.max(0, (await retriesOf(linker)) - retried));
  assert.equal(await committedFacts(world), committed, 'facts committed while the graph was empty');
  assert.equal(await loggedDecisions(world), decisions, 'decisions made while the graph was empty');
  assert.equal(await linker.isReady(), false, 'a linker without a graph is not ready');
  return refused;
}

async function retriesOf(linker: ServiceProcess): Promise<number> {
  return sumOf(await metricsOf(linker), 'playline_stream_retries_total', 'step="batch"');
}

export const redisWiped: Scenario = {
  fault: 6,
  title: 'linkers refuse a Redis that has lost all data; a rebuild restores it, and every person keeps all ids',
  tried: 'Redis FLUSHALL, link facts at the same time, identity rebuild',
  run: async (trial) => {
    const { world, random, environmentId } = trial;
    const gateway = await trial.start('gateway');
    let { key } = trial;
    const persons = createPersons(trial, () => ({ gateway, key }));
    const names = Array.from({ length: random.integer(3, 8) }, (_, index) => `known${index}`);
    for (const name of names) await persons.identify(name);
    const traffic = trial.openTraffic([gateway]);
    await traffic.flows(random.integer(10, 30));
    await traffic.close();
    await settle(world);
    await persons.assertWhole(names, 2);
    const redis = new Redis(world.stack.file.redis);
    await redis.flushall();
    redis.disconnect();
    // The access keys were in the same Redis, and are rebuilt by another command.
    key = await world.deployment.addEnvironment(environmentId);
    const refused = await expectRefusal(trial, persons, names);
    await rebuild(world);
    await waitFor('the linker resumes', () => linkerOf(trial).isReady());
    // A linker on an emptied graph would join the account with the player but not with the visitor.
    await persons.assertWhole(names, 3);
    await persons.assertWhole(['empty'], 2);
    return { wipes: 1, 'attempts refused': refused, 'persons restored': names.length };
  },
};
