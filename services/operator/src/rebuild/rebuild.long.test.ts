import { randomBytes } from 'node:crypto';
import {
  type ConsentRecord,
  consentCodec,
  erasureRequestCodec,
  IDENTITY_TYPES,
  identityDecisionCodec,
  TOPICS,
} from '@playline/contracts';
import { LaggingStoreFault, rebuildConsents, SUSPECT_LIMIT } from '@playline/people';
import { until } from '@playline/testkit';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { ENVIRONMENTS, type LinkParts, openRebuildFixture, type RebuildFixture } from '../test/rebuild-fixture.ts';

// Starting the linker processes can be slow on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

let fixture: RebuildFixture;
let linkers: Awaited<ReturnType<RebuildFixture['startLinker']>>[] = [];

const anyId = fc.constantFrom(...'abcdefghij');
const kind = fc.constantFrom(...IDENTITY_TYPES.slice(0, 4), 'untyped' as const);
const position = { environmentId: fc.constantFrom(...ENVIRONMENTS), toKind: kind, toId: anyId };
const link: fc.Arbitrary<LinkParts> = fc.oneof(
  fc.record({ ...position, link: fc.constant('identify'), fromKind: fc.constant('anonymous'), fromId: anyId }),
  fc.record({ ...position, link: fc.constant('alias'), fromKind: kind, fromId: anyId }),
);
const randomLinks = (count: number, seed: number) => fc.sample(link, { numRuns: count, seed });

const startLinker = async () => {
  const linker = await fixture.startLinker();
  linkers.push(linker);
  return linker;
};
const stopLinkers = async (signal: NodeJS.Signals = 'SIGTERM') => {
  await Promise.all(linkers.map(({ child }) => fixture.stop(child, signal)));
  linkers = [];
};
const digests = ({ rebuild }: Pick<RebuildFixture['people'], 'rebuild'>) =>
  Promise.all(ENVIRONMENTS.map((id) => rebuild.digest(id)));
const expectModel = async () =>
  expect(await digests(fixture.people)).toEqual(await digests((await fixture.model()).people));

async function decide100Links(seed: number): Promise<void> {
  await fixture.publishLinks(randomLinks(100, seed));
  await startLinker();
  await fixture.awaitDecided();
  await stopLinkers();
}

function toConsent(identityKey: Buffer, status: ConsentRecord['status']) {
  const shared = { source: 'test', receivedAt: 1_790_000_000_000, traceId: 'e'.repeat(32) };
  const change: ConsentRecord = { ...shared, environmentId: 'test-one', identityKey, status };
  return { ...fixture.toRecord(TOPICS.consents.name, consentCodec, change), key: identityKey };
}

async function publishConsents(): Promise<void> {
  const { publish, read, people } = fixture;
  const keys = Array.from({ length: 12 }, () => randomBytes(16));
  const statuses = ['none', 'anonymous', 'full'] as const;
  const records = Array.from({ length: 40 }, (_, index) => toConsent(keys[index % 12]!, statuses[index % 3]!));
  await publish(records);
  const changes = (await read(TOPICS.consents.name)).map(({ value, partition, offset, timestampMs }) => {
    const { environmentId, identityKey, status, receivedAt } = consentCodec.decode(value!.subarray(5));
    return { environmentId, identityKey, status, receivedAt, position: { partition, offset, loggedAtMs: timestampMs } };
  });
  await rebuildConsents(people.rebuild, changes);
}

async function requestErasure() {
  const { publish, toRecord, people } = fixture;
  const [erasureId, subject, member] = [randomBytes(16), randomBytes(16), randomBytes(16)];
  const cutoffAt = 1_790_000_000_000;
  const name = { environmentId: 'test-one', erasureId };
  const request = { ...name, subjectKeys: [subject], memberKeys: [member], cutoffAt, requestedAt: cutoffAt };
  await publish([toRecord(TOPICS.erasures.name, erasureRequestCodec, { ...request, traceId: 'e'.repeat(32) })]);
  await people.guards.putHold({ ...name, keys: [subject, member], cutoffMs: cutoffAt, lapsesAtMs: null });
  return erasureId;
}

async function fenceRandomKey() {
  const key = randomBytes(16);
  await fixture.query(
    `INSERT INTO erasure_fences (environment_id, identity_key, cutoff_at) VALUES ('test-one', unhex('${key.toString('hex')}'), fromUnixTimestamp64Milli(1790000000123))`,
  );
  await fixture.people.guards.fence([{ environmentId: 'test-one', key, cutoffMs: 1_790_000_000_123 }]);
}

beforeAll(async () => {
  fixture = await openRebuildFixture();
  expect(await fixture.restore('identity', 'init')).toMatchObject({ code: 0 });
  const writer = await fixture.startWriter();
  await publishConsents();
  await decide100Links(1);
  for (const topic of [TOPICS.identityDecisions, TOPICS.consents]) await fixture.awaitWritten(topic.name);
  // From this point on, the log is ahead of the tables.
  await fixture.stop(writer, 'SIGTERM');
  await publishConsents();
  await requestErasure();
  await fenceRandomKey();
  await decide100Links(2);
}, 240_000);
afterEach(async () => {
  fixture.hooks.beforeCall = null;
  await stopLinkers('SIGKILL');
});
afterAll(() => fixture.close());

it('a rebuild that is killed before any Redis call and run again restores identical data', async () => {
  const before = await fixture.dump();
  const calls = new Set<string>();
  fixture.hooks.beforeCall = (name) => void calls.add(name);
  await fixture.wipe();
  expect(await fixture.restore('rebuild')).toMatchObject({ code: 0 });
  // Excluded, because the command would retry this call while it waits for Redis.
  calls.delete('readEpoch');
  // Excluded, because it is called after the epoch is set, and gateways can read the end of the log themselves.
  expect(calls.delete('consents.markCurrent')).toBe(true);
  expect([...calls]).toEqual(
    expect.arrayContaining(['rebuild.loadOverrides', 'rebuild.loadConsents', 'guards.putHold', 'rebuild.mintEpoch']),
  );
  for (const call of calls) {
    await fixture.wipe();
    let isKilled = false;
    fixture.hooks.beforeCall = (name) => {
      isKilled ||= name === call;
      if (isKilled) throw new Error('killed');
    };
    expect(await fixture.restore('rebuild')).not.toMatchObject({ code: 0 });
    fixture.hooks.beforeCall = null;
    expect(await fixture.people.readEpoch()).toBeNull();
    expect(await fixture.restore('rebuild')).toMatchObject({ code: 0 });
    expect(await fixture.dump()).toEqual(before);
  }
});

it('linkers are not ready with an emptied Redis, and continue after a rebuild has restored identical data', async () => {
  const before = await fixture.dump();
  const linker = await startLinker();
  await until('the linker is ready', async () => (await fetch(`${linker.adminUrl}/readyz`)).ok, 60_000);
  await fixture.wipe();
  const notReady = async () => (await (await fetch(`${linker.adminUrl}/readyz`)).json()) as { notReady: string[] };
  await until(
    'the linker reports the missing graph',
    async () => (await notReady()).notReady.includes('graph'),
    60_000,
  );
  const { code, results } = await fixture.restore('rebuild');
  expect({ code, families: new Set(Object.keys(before).map((name) => name[0])) }).toEqual({
    code: 0,
    families: new Set([...'imfhc']),
  });
  expect(results.join('\n')).toMatch(/holds +1 .*\nepoch/);
  expect(await fixture.dump()).toEqual(before);
  await fixture.publishLinks(randomLinks(60, 3));
  await fixture.awaitDecided();
  await until('the linker is ready again', async () => (await fetch(`${linker.adminUrl}/readyz`)).ok, 60_000);
  await expectModel();
});

it('facts that are published while Redis is empty are applied after a rebuild', async () => {
  await fixture.wipe();
  await startLinker();
  await fixture.publishLinks(randomLinks(60, 4));
  expect(await fixture.restore('rebuild')).toMatchObject({ code: 0 });
  await fixture.awaitDecided();
  await expectModel();
});

it('a rebuild does not lose a link whose decision was not published before later decisions in its partition', async () => {
  const { publish, toRecord } = fixture;
  const countBefore = (await fixture.model()).decisions.length;
  await fixture.publishLinks(randomLinks(90, 5));
  const decisions = (await fixture.model()).decisions.slice(countBefore);
  // Two environments share a partition. A linker was killed after it published the decisions of one of them.
  const partitions = ENVIRONMENTS.map((id) => decisions.find(({ environmentId }) => environmentId === id)!.partition);
  const shared = partitions.find((partition, at) => partitions.indexOf(partition) !== at)!;
  const [, published] = ENVIRONMENTS.filter((_, at) => partitions[at] === shared);
  const records = decisions
    .filter(({ environmentId }) => environmentId === published)
    .map((decision) => ({
      ...toRecord(TOPICS.identityDecisions.name, identityDecisionCodec, decision),
      key: Buffer.from(decision.environmentId),
    }));
  // The next linker was killed while it published the same decisions again.
  await publish([...records, ...records.slice(0, records.length / 2)]);
  await fixture.wipe();
  let isLate = false;
  fixture.hooks.beforeCall = async (name) => {
    if (name === 'rebuild.loadOverrides' && !isLate) await publish(records.slice(-1));
    isLate ||= name === 'rebuild.loadOverrides';
  };
  const { code, progress } = await fixture.restore('rebuild');
  fixture.hooks.beforeCall = null;
  expect(code).toBe(0);
  expect(progress).toContain('reading all data again');
  await startLinker();
  await fixture.awaitDecided();
  await expectModel();
});

it('a rebuild restores consents that were logged before the epoch was set', async () => {
  await fixture.wipe();
  const identityKey = randomBytes(16);
  fixture.hooks.beforeCall = async (name) => {
    if (name === 'rebuild.mintEpoch') await fixture.publish([toConsent(identityKey, 'none')]);
  };
  expect(await fixture.restore('rebuild')).toMatchObject({ code: 0 });
  fixture.hooks.beforeCall = null;
  expect(await fixture.people.consents.read('test-one', identityKey)).toMatchObject({ status: 'none' });
});

it('a rebuild that fails after the epoch was set reports how to restore the missing consents', async () => {
  await fixture.wipe();
  const identityKey = randomBytes(16);
  let isMinted = false;
  fixture.hooks.beforeCall = async (name) => {
    if (isMinted) throw new Error('killed');
    if (name === 'rebuild.mintEpoch') await fixture.publish([toConsent(identityKey, 'none')]);
    isMinted = name === 'rebuild.mintEpoch';
  };
  const interrupted = await fixture.restore('rebuild');
  fixture.hooks.beforeCall = null;
  expect(interrupted).toMatchObject({ code: 1, progress: expect.stringContaining('npm run consent -- rebuild') });
  const repeated = await fixture.restore('rebuild');
  expect(repeated).toMatchObject({ code: 1, progress: expect.stringContaining('npm run consent -- rebuild') });
  await expect(fixture.people.consents.read('test-one', identityKey)).rejects.toThrow(LaggingStoreFault);
  expect(await fixture.restore('consent', 'rebuild')).toMatchObject({ code: 0 });
  expect(await fixture.people.consents.read('test-one', identityKey)).toMatchObject({ status: 'none' });
});

it('identity init refuses an emptied Redis, and identity rebuild refuses a consumer group without commits', async () => {
  await fixture.wipe();
  const init = await fixture.restore('identity', 'init');
  expect(init).toMatchObject({ code: 4, progress: expect.stringContaining('npm run rebuild') });
  expect(init.progress).toContain('identity_overrides');
  const misspelt = await fixture.restore('identity', 'rebuild', '--linker-group', 'test-unknown');
  expect(misspelt).toMatchObject({ code: 1, progress: expect.stringContaining('--linker-group') });
  expect(await fixture.people.readEpoch()).toBeNull();
  const options = ['--linker-group', 'test-unknown', '--decide-again'];
  expect(await fixture.restore('identity', 'rebuild', ...options)).toMatchObject({ code: 0 });
  await startLinker();
  await fixture.publishLinks(randomLinks(10, 6));
  await fixture.awaitDecided();
  await expectModel();
});

it('consent rebuild restores consents without changing other data in Redis', async () => {
  const before = await fixture.dump();
  await fixture.database.client.del(...Object.keys(before).filter((name) => name.startsWith('c:')));
  expect(await fixture.restore('consent', 'rebuild')).toMatchObject({ code: 0 });
  expect(await fixture.dump()).toEqual(before);
});

it('rebuild fails if Redis has an epoch, and does not change data', async () => {
  const before = await fixture.dump();
  const epoch = await fixture.people.readEpoch();
  const { code, progress } = await fixture.restore('rebuild');
  expect({ code, epoch: await fixture.people.readEpoch() }).toEqual({ code: 1, epoch });
  expect(progress).toContain('has an epoch');
  expect(await fixture.dump()).toEqual(before);
  expect(await fixture.restore('identity', 'init')).toMatchObject({ code: 0, results: [`epoch ${epoch}`] });
});

it('a rebuild restores held ids', async () => {
  const environmentId = 'test-suspects';
  const to = { toKind: 'untyped', toId: 'everybody' } as const;
  const links = Array.from(
    { length: SUSPECT_LIMIT.anonymousIdsMax + 2 },
    (_, index): LinkParts => ({
      environmentId,
      link: 'identify',
      fromKind: 'anonymous',
      fromId: `device-${index}`,
      ...to,
    }),
  );
  const readHeld = async () =>
    (await fixture.people.graph.suspects(environmentId)).map(({ key, state }) => `${key.toString('hex')} ${state}`);
  await fixture.publishLinks(links);
  await startLinker();
  await fixture.awaitDecided();
  await stopLinkers();
  const key = fixture.keyOf(environmentId, 'untyped', 'everybody').toString('hex');
  expect(await readHeld()).toEqual([`${key} held`]);
  await fixture.wipe();
  expect(await fixture.restore('rebuild')).toMatchObject({ code: 0 });
  expect(await readHeld()).toEqual([`${key} held`]);
});
