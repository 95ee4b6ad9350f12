import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import { createIdentityKeyer } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { Redis } from 'ioredis';
import { createPersons, deliver, type Persons } from '../linker-persons.ts';
import { rowsOf } from '../world/clickhouse.ts';
import { countRecords, endsOf, settle } from '../world/end-check.ts';
import { metricsOf, sumOf } from '../world/metrics.ts';
import { operate } from '../world/operate.ts';
import { KEY_HEADER, post } from '../world/post.ts';
import { type Reached, toSeconds } from '../world/report.ts';
import type { ServiceProcess } from '../world/service-process.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';
import { environmentOf, type World } from '../world/world.ts';

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

/** Keeps all of Redis. @returns a function that restores it while no service is connected, as after a crash */
async function keepRedis({ world }: Trial): Promise<() => Promise<void>> {
  const redis = new Redis(world.stack.file.redis);
  const kept = new Map<Buffer, Buffer>();
  for await (const names of redis.scanBufferStream({ count: 1_000 }))
    for (const name of names as Buffer[]) {
      const dump = await redis.dumpBuffer(name);
      if (dump !== null) kept.set(name, dump);
    }
  return async () => {
    await world.wires.redis.set('refuse');
    const restoring = redis.multi().flushall();
    for (const [name, dump] of kept) restoring.restore(name, 0, dump);
    await restoring.exec();
    redis.disconnect();
    await world.wires.redis.set('open');
  };
}

type Accounts = Awaited<ReturnType<typeof openAccounts>>;

/** Accounts of a trial, linked by alias messages. `roots` returns their person keys in Redis. */
async function openAccounts({ world, environmentId, ledger, key }: Trial, gateway: ServiceProcess) {
  const keyOf = createIdentityKeyer(Buffer.from(environmentOf('identity-linker', world).IDENTITY_PEPPER!, 'hex'));
  const people = await openRedisPeople({ url: world.stack.file.redis });
  const linked = new Set<string>();
  const keyOfAccount = (account: string) => keyOf(environmentId, 'steam', account);
  return {
    people,
    keyOf: keyOfAccount,
    async alias(fromId: string, toId: string) {
      for (const account of [fromId, toId]) linked.add(account);
      const ids = { fromId, fromType: 'steam', toId, toType: 'steam' };
      await deliver({ ledger, gateway, key }, [{ type: 'alias', ...ids }]);
    },
    async roots() {
      const roots = await people.graph.rootsOf(environmentId, [...linked].map(keyOfAccount));
      return roots.map((root) => root?.toString('hex') ?? '');
    },
  };
}

const linkersOf = ({ crew }: Trial) => crew.filter(({ service }) => service === 'identity-linker');

async function rewindsOf(trial: Trial): Promise<number> {
  const counts = await Promise.all(
    linkersOf(trial).map(async (linker) => sumOf(await metricsOf(linker), 'playline_identity_rewinds_total')),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Waits for the linkers, and asserts that each is ready only when the persons are the same as before the loss. */
async function awaitLinks(trial: Trial, accounts: Accounts, before: readonly string[]): Promise<void> {
  await waitFor('the links are in Redis again', async () => {
    const ready = await Promise.all(linkersOf(trial).map((linker) => linker.isReady()));
    const roots = await accounts.roots();
    const isBack = roots.join() === before.join();
    assert.ok(isBack || !ready.every(Boolean), 'a linker is ready although links are missing');
    return isBack && ready.every(Boolean);
  });
}

async function loseRelease(trial: Trial, accounts: Accounts): Promise<Reached> {
  const { world, random, environmentId } = trial;
  const { guards } = accounts.people;
  const groups = Array.from({ length: random.integer(4, 8) }, (_, at) => `g${at}`);
  const erasure = { environmentId, erasureId: randomBytes(16) };
  const keys = groups.map((group) => accounts.keyOf(`${group}a`));
  const before = await rewindsOf(trial);
  await guards.putHold({ ...erasure, keys, cutoffMs: Date.now() - 60_000, lapsesAtMs: null });
  const lose = await keepRedis(trial);
  await guards.releaseHold(erasure);
  // Decided again under the hold, the first link of a group would come last, and the larger side would be another one.
  for (const group of groups)
    for (const [from, to] of ['ab', 'cd', 'bd']) await accounts.alias(`${group}${from}`, `${group}${to}`);
  await settle(world);
  const roots = await accounts.roots();
  await lose();
  await awaitLinks(trial, accounts, roots);
  await guards.releaseHold(erasure);
  for (const group of groups) await accounts.alias(`${group}e`, `${group}a`);
  await settle(world);
  return { rewinds: (await rewindsOf(trial)) - before, 'links lost': 3 * groups.length };
}

async function loseQuietLinks(trial: Trial, accounts: Accounts): Promise<Reached> {
  const { world, random } = trial;
  const before = await rewindsOf(trial);
  const lose = await keepRedis(trial);
  const links = random.integer(3, 12);
  for (let at = 0; at < links; at++) await accounts.alias(`x${at}`, `y${random.integer(0, 2)}`);
  await settle(world);
  const roots = await accounts.roots();
  const factsBefore = await endsOf(world, TOPICS.identityLinks.name);
  await delay(random.integer(0, 500));
  await lose();
  await awaitLinks(trial, accounts, roots);
  assert.deepEqual(await endsOf(world, TOPICS.identityLinks.name), factsBefore, 'no further link arrived');
  return { 'quiet rewinds': (await rewindsOf(trial)) - before, 'quiet links lost': links };
}

export const redisLosesLastWrites: Scenario = {
  fault: 6,
  tried:
    'Redis loses its last writes: the release of a hold with published decisions, then links of partitions without further links',
  run: async (trial) => {
    const accounts = await openAccounts(trial, await trial.start('gateway'));
    try {
      return { ...(await loseRelease(trial, accounts)), ...(await loseQuietLinks(trial, accounts)) };
    } finally {
      await accounts.people.close();
    }
  },
};

const CONSENT_PATH = '/v1/audience/tracking-consent';
/** Longer than the 20 s after which a producer gives up a change. */
const IN_DOUBT_MS = 22_000;

async function putConsent({ url }: ServiceProcess, key: string, change: Readonly<Record<string, string>>) {
  const body = JSON.stringify(change);
  return (await post({ url, key, body, method: 'PUT', path: CONSENT_PATH, headers: { connection: 'close' } })).status;
}

async function getConsent(gateway: ServiceProcess, key: string, anonymousId: string): Promise<string> {
  const headers = { [KEY_HEADER]: key, connection: 'close' };
  const answer = await fetch(`${gateway.url}${CONSENT_PATH}?anonymousId=${anonymousId}`, { headers });
  return answer.ok ? ((await answer.json()) as { status: string }).status : `answer ${answer.status}`;
}

export const refusedConsentArrivesLate: Scenario = {
  fault: 19,
  tried: 'a gateway answers a consent 500 and publishes it after another gateway accepted a later one',
  run: async (trial) => {
    const { world, random, key, environmentId } = trial;
    const [slow, quick] = await Promise.all([trial.start('gateway'), trial.start('gateway')]);
    const anonymousId = `consent-${randomUUID()}`;
    const change = (status: string) => ({ anonymousId, status, source: 'faults' });
    const [earlier, later] = random.shuffle(['none', 'anonymous', 'full'] as const);
    await world.wires.kafka.set(random.pick(['refuse', 'freeze'] as const));
    assert.equal(await putConsent(slow!, key, change(earlier!)), 500, 'a consent without a broker');
    // Stopped, so that it publishes what it still holds after the later change.
    slow!.signal('SIGSTOP');
    await world.wires.kafka.set('open');
    await waitFor('the later consent is accepted', async () => (await putConsent(quick!, key, change(later!))) === 204);
    slow!.signal('SIGCONT');
    const endAt = performance.now() + IN_DOUBT_MS;
    let reads = 0;
    while (performance.now() < endAt) {
      assert.equal(await getConsent(quick!, key, anonymousId), later, 'the consent that was accepted last');
      reads++;
      await delay(random.integer(100, 500));
    }
    await settle(world);
    const rows = await rowsOf(
      world.deployment.engine,
      `SELECT status FROM consents_current WHERE environment_id = '${environmentId}'`,
    );
    assert.deepEqual(rows, [[later]], 'the consent in ClickHouse');
    return { 'answered 500': 1, 'reads afterwards': reads };
  },
};
