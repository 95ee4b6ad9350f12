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
import { type Effects, toSeconds } from '../world/report.ts';
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

const linkerOf = ({ services }: Trial) => services.find(({ service }) => service === 'identity-linker')!;

export const redisUnavailableToLinker: Scenario = {
  fault: 6,
  tried: 'Redis refuses connections or freezes while link facts arrive',
  run: async (trial) => {
    const { world, random, key } = trial;
    const gateway = await trial.start('gateway');
    const persons = createPersons(trial, () => ({ gateway, key }));
    const linker = linkerOf(trial);
    const traffic = trial.openTraffic([gateway]);
    await persons.identify('before');
    await traffic.awaitBatches(random.integer(5, 15));
    await world.proxies.redis.set(random.pick(['refuse', 'freeze'] as const));
    const beganAt = performance.now();
    const before = await countRetries(linker);
    await waitFor('the linker is not ready', async () => !(await linker.isReady()));
    await traffic.awaitBatches(10);
    await persons.identify('during');
    await persons.alias('before');
    const pendingFacts = await waitFor('link facts are pending', async () =>
      Math.max(0, (await loggedFacts(world)) - (await committedFacts(world))),
    );
    const retries = await waitFor('the linker has retried', async () =>
      Math.max(0, (await countRetries(linker)) - before),
    );
    await delay(random.integer(0, 2_000));
    const outageMs = performance.now() - beganAt;
    await world.proxies.redis.set('open');
    await waitFor('the linker is ready again', () => linker.isReady());
    await traffic.awaitBatches(5);
    await traffic.close();
    await persons.assertMerged(['before'], 3);
    await persons.assertMerged(['during'], 2);
    return {
      'link facts pending': pendingFacts,
      'attempts retried': retries,
      'Redis unavailable s': toSeconds(outageMs),
    };
  },
};

async function rebuild(world: World): Promise<void> {
  const settings = { REDIS_URL: world.stack.file.redis };
  const groups = ['--linker-group', world.groupOf('identity-linker'), '--writer-group', world.groupOf('event-writer')];
  const { code, stdout, stderr } = await operate(world, ['identity', 'rebuild', ...groups], { settings, maxMs: 0 });
  if (code !== 0) throw new Error(`identity rebuild exited with ${code}:\n${stdout}${stderr}`);
}

/** Asserts that the linker decides no link facts while the graph is empty. @returns the linker's number of retries */
async function expectRefusal(trial: Trial, persons: Persons, names: readonly string[]): Promise<number> {
  const { world } = trial;
  const linker = linkerOf(trial);
  await waitFor('the linker is not ready', async () => !(await linker.isReady()));
  const [committed, decisions] = [await committedFacts(world), await loggedDecisions(world)];
  // The metric includes retries from earlier trials.
  const before = await countRetries(linker);
  for (const name of names) await persons.alias(name);
  await persons.identify('empty');
  const count = await waitFor('the linker has retried', async () => Math.max(0, (await countRetries(linker)) - before));
  assert.equal(await committedFacts(world), committed, 'facts committed while the graph was empty');
  assert.equal(await loggedDecisions(world), decisions, 'decisions logged while the graph was empty');
  assert.equal(await linker.isReady(), false, 'a linker without a graph is not ready');
  return count;
}

async function countRetries(linker: ServiceProcess): Promise<number> {
  return sumOf(await metricsOf(linker), 'playline_stream_retries_total', 'step="batch"');
}

export const redisWiped: Scenario = {
  fault: 6,
  title: 'linkers process no facts while Redis is empty, and every person has all ids after a rebuild',
  tried: 'Redis FLUSHALL while link facts arrive, identity rebuild',
  run: async (trial) => {
    const { world, random, environmentId } = trial;
    const gateway = await trial.start('gateway');
    let { key } = trial;
    const persons = createPersons(trial, () => ({ gateway, key }));
    const names = Array.from({ length: random.integer(3, 8) }, (_, index) => `known${index}`);
    for (const name of names) await persons.identify(name);
    const traffic = trial.openTraffic([gateway]);
    await traffic.awaitBatches(random.integer(10, 30));
    await traffic.close();
    await settle(world);
    await persons.assertMerged(names, 2);
    const redis = new Redis(world.stack.file.redis);
    await redis.flushall();
    redis.disconnect();
    // FLUSHALL also removed the access keys. `keys rebuild` is tested elsewhere.
    key = await world.deployment.addEnvironment(environmentId);
    const refused = await expectRefusal(trial, persons, names);
    await rebuild(world);
    await waitFor('the linker resumes', () => linkerOf(trial).isReady());
    // A linker that used the empty graph would have linked the account only to the player, not to the visitor.
    await persons.assertMerged(names, 3);
    await persons.assertMerged(['empty'], 2);
    return { wipes: 1, 'attempts refused': refused, 'persons restored': names.length };
  },
};

/** Copies all Redis keys. @returns a function that disconnects the services and restores the copy */
async function copyRedis({ world }: Trial): Promise<() => Promise<void>> {
  const redis = new Redis(world.stack.file.redis);
  const copied = new Map<Buffer, Buffer>();
  for await (const names of redis.scanBufferStream({ count: 1_000 }))
    for (const name of names as Buffer[]) {
      const dump = await redis.dumpBuffer(name);
      if (dump !== null) copied.set(name, dump);
    }
  return async () => {
    await world.proxies.redis.set('refuse');
    const restoring = redis.multi().flushall();
    for (const [name, dump] of copied) restoring.restore(name, 0, dump);
    await restoring.exec();
    redis.disconnect();
    await world.proxies.redis.set('open');
  };
}

type Accounts = Awaited<ReturnType<typeof openAccounts>>;

/** Links accounts with alias messages. `roots` returns the accounts' person keys in Redis. */
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

const linkersOf = ({ services }: Trial) => services.filter(({ service }) => service === 'identity-linker');

async function countRewinds(trial: Trial): Promise<number> {
  const counts = await Promise.all(
    linkersOf(trial).map(async (linker) => sumOf(await metricsOf(linker), 'playline_identity_rewinds_total')),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Waits until the links are restored, and asserts that until then at least one linker is not ready. */
async function awaitLinks(trial: Trial, accounts: Accounts, before: readonly string[]): Promise<void> {
  await waitFor('the links are restored in Redis', async () => {
    const ready = await Promise.all(linkersOf(trial).map((linker) => linker.isReady()));
    const roots = await accounts.roots();
    const isRestored = roots.join() === before.join();
    assert.ok(isRestored || !ready.every(Boolean), 'all linkers are ready although links are missing');
    return isRestored && ready.every(Boolean);
  });
}

async function loseHoldRelease(trial: Trial, accounts: Accounts): Promise<Effects> {
  const { world, random, environmentId } = trial;
  const { guards } = accounts.people;
  const groups = Array.from({ length: random.integer(4, 8) }, (_, index) => `g${index}`);
  const erasure = { environmentId, erasureId: randomBytes(16) };
  const keys = groups.map((group) => accounts.keyOf(`${group}a`));
  const before = await countRewinds(trial);
  await guards.putHold({ ...erasure, keys, cutoffMs: Date.now() - 60_000, lapsesAtMs: null });
  const restoreCopy = await copyRedis(trial);
  await guards.releaseHold(erasure);
  // If a group's links were decided again while the restored hold applies, they would be applied in a different order,
  // which would result in a different person key.
  for (const group of groups)
    for (const [from, to] of ['ab', 'cd', 'bd']) await accounts.alias(`${group}${from}`, `${group}${to}`);
  await settle(world);
  const roots = await accounts.roots();
  await restoreCopy();
  await awaitLinks(trial, accounts, roots);
  await guards.releaseHold(erasure);
  for (const group of groups) await accounts.alias(`${group}e`, `${group}a`);
  await settle(world);
  return { rewinds: (await countRewinds(trial)) - before, 'links lost': 3 * groups.length };
}

async function loseIdleLinks(trial: Trial, accounts: Accounts): Promise<Effects> {
  const { world, random } = trial;
  const before = await countRewinds(trial);
  const restoreCopy = await copyRedis(trial);
  const links = random.integer(3, 12);
  for (let index = 0; index < links; index++) await accounts.alias(`x${index}`, `y${random.integer(0, 2)}`);
  await settle(world);
  const roots = await accounts.roots();
  const factsBefore = await endsOf(world, TOPICS.identityLinks.name);
  await delay(random.integer(0, 500));
  await restoreCopy();
  await awaitLinks(trial, accounts, roots);
  assert.deepEqual(await endsOf(world, TOPICS.identityLinks.name), factsBefore, 'no further links were published');
  return { 'rewinds of idle partitions': (await countRewinds(trial)) - before, 'links lost in idle partitions': links };
}

export const redisLosesLastWrites: Scenario = {
  fault: 6,
  tried: 'Redis loses its last writes: a hold’s release and the links after it, then links on idle partitions',
  run: async (trial) => {
    const accounts = await openAccounts(trial, await trial.start('gateway'));
    try {
      return { ...(await loseHoldRelease(trial, accounts)), ...(await loseIdleLinks(trial, accounts)) };
    } finally {
      await accounts.people.close();
    }
  },
};

const CONSENT_PATH = '/v1/audience/tracking-consent';
/** Longer than the producer's delivery timeout of 20 s. */
const PUBLISH_MAX_MS = 22_000;

async function putConsent({ url }: ServiceProcess, key: string, change: Readonly<Record<string, string>>) {
  const body = JSON.stringify(change);
  return (await post({ url, key, body, method: 'PUT', path: CONSENT_PATH, headers: { connection: 'close' } })).status;
}

async function getConsent(gateway: ServiceProcess, key: string, anonymousId: string): Promise<string> {
  const headers = { [KEY_HEADER]: key, connection: 'close' };
  const response = await fetch(`${gateway.url}${CONSENT_PATH}?anonymousId=${anonymousId}`, { headers });
  return response.ok ? ((await response.json()) as { status: string }).status : `status ${response.status}`;
}

export const refusedConsentArrivesLate: Scenario = {
  fault: 19,
  tried: 'a gateway responds to a consent with 500, and publishes it after another gateway accepted a later consent',
  run: async (trial) => {
    const { world, random, key, environmentId } = trial;
    const [first, second] = await Promise.all([trial.start('gateway'), trial.start('gateway')]);
    const anonymousId = `consent-${randomUUID()}`;
    const change = (status: string) => ({ anonymousId, status, source: 'faults' });
    const [earlier, later] = random.shuffle(['none', 'anonymous', 'full'] as const);
    await world.proxies.kafka.set(random.pick(['refuse', 'freeze'] as const));
    assert.equal(await putConsent(first!, key, change(earlier!)), 500, 'status of a consent without a broker');
    // While stopped, the gateway cannot publish the pending consent before the later change.
    first!.signal('SIGSTOP');
    await world.proxies.kafka.set('open');
    await waitFor('the new consent is accepted', async () => (await putConsent(second!, key, change(later!))) === 204);
    first!.signal('SIGCONT');
    const endAt = performance.now() + PUBLISH_MAX_MS;
    let reads = 0;
    while (performance.now() < endAt) {
      assert.equal(await getConsent(second!, key, anonymousId), later, 'the consent that was accepted last');
      reads++;
      await delay(random.integer(100, 500));
    }
    await settle(world);
    const rows = await rowsOf(
      world.deployment.engine,
      `SELECT status FROM consents_current WHERE environment_id = '${environmentId}'`,
    );
    assert.deepEqual(rows, [[later]], 'the consent in ClickHouse');
    return { 'responses with 500': 1, 'reads afterwards': reads };
  },
};
