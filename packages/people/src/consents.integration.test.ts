import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { isLater, type LoggedConsent, rebuildConsents } from './consents.ts';
import type { People } from './people.ts';
import { MissingEpochFault } from './people.ts';
import { openRedisPeople } from './redis/index.ts';
import { openMemoryPeople } from './test/memory/index.ts';
import { openTestPeople } from './test/test-people.ts';

interface Harness {
  readonly stores: readonly [People, People];
  deleteEpoch(): Promise<void>;
}

const testPeople = openTestPeople();
afterAll(testPeople.close);

async function openRedis(): Promise<Harness> {
  const { people, namespace } = await testPeople.open({ consentTopic: 'consents' });
  const second = await testPeople.open({ namespace, consentTopic: 'consents' });
  await people.rebuild.mintEpoch();
  await people.consents.markCurrent((await people.consents.syncState()).run, new Map());
  return {
    stores: [people, second.people],
    deleteEpoch: async () => void (await testPeople.redis.del(`${namespace}identity:epoch`)),
  };
}

async function openMemory(): Promise<Harness> {
  const people = openMemoryPeople();
  await people.rebuild.mintEpoch();
  return { stores: [people, people], deleteEpoch: async () => people.deleteEpoch() };
}

const newKey = () => randomBytes(16);
const at = (offset: number, partition = 4, loggedAtMs = LOGGED_AT + offset) => ({ partition, offset, loggedAtMs });
const RECEIVED_AT = Date.UTC(2026, 0, 1);
const LOGGED_AT = RECEIVED_AT + 5;

function createChange(fields: Partial<LoggedConsent> = {}): LoggedConsent {
  const defaults = { environmentId: `test-${randomUUID()}`, identityKey: newKey(), status: 'full' } as const;
  return { ...defaults, receivedAt: RECEIVED_AT, position: at(0), ...fields };
}

const statuses = fc.constantFrom('none', 'anonymous', 'full');
/** Changes in one partition at distinct offsets, with arbitrary broker timestamps. */
const changesIn = (partition: number, fromMs: number) =>
  fc.uniqueArray(
    fc.record({
      status: statuses,
      position: fc.record({
        partition: fc.constant(partition),
        offset: fc.nat({ max: 2 ** 40 }),
        loggedAtMs: fc.integer({ min: fromMs, max: fromMs + 3 }),
      }),
    }),
    { minLength: 1, maxLength: 8, selector: ({ position }) => position.offset },
  );
/** One identity's logged changes, optionally from before and after partitions were added. */
const history = fc
  .tuple(changesIn(4, LOGGED_AT), fc.option(changesIn(1, LOGGED_AT + 10), { nil: [] }))
  .map((partitions) => partitions.flat());

describe.each([
  ['memory', openMemory],
  ['redis', openRedis],
])('the consent store in %s', (_name, open) => {
  it('a consent applied by one process is visible to other processes', async () => {
    const { stores } = await open();
    const change = createChange({ status: 'anonymous', position: at(2 ** 40 + 7, 3) });
    expect(await stores[0].consents.apply(change)).toBe('applied');
    const { status, receivedAt, position } = change;
    const stored = await stores[1].consents.read(change.environmentId, change.identityKey);
    expect(stored).toEqual({ status, receivedAt, position });
  });

  it('consents are stored per identity and environment', async () => {
    const { stores } = await open();
    const change = createChange();
    await stores[0].consents.apply(change);
    expect(await stores[0].consents.read(change.environmentId, newKey())).toBeNull();
    expect(await stores[0].consents.read(`${change.environmentId}-b`, change.identityKey)).toBeNull();
  });

  it('the change with the latest log position wins in any order and process, and repeats are superseded', async () => {
    const { stores } = await open();
    const property = fc.asyncProperty(history, fc.infiniteStream(fc.boolean()), async (changes, choices) => {
      const identity = createChange();
      const latest = changes.reduce((a, b) => (isLater(b.position, a.position) ? b : a));
      const applied = changes.map((change) =>
        stores[choices.next().value ? 0 : 1].consents.apply({ ...identity, ...change }),
      );
      const outcomes = await Promise.all(applied);
      expect(await stores[0].consents.read(identity.environmentId, identity.identityKey)).toMatchObject(latest);
      expect(outcomes[changes.indexOf(latest)]).toBe('applied');
      for (const change of changes)
        expect(await stores[0].consents.apply({ ...identity, ...change })).toBe('superseded');
    });
    await fc.assert(property, { numRuns: 50 });
  });

  it('the store refuses consent changes of a fenced identity up to the cut-off', async () => {
    const { stores } = await open();
    const change = createChange();
    const { environmentId, identityKey: key } = change;
    await stores[0].guards.fence([{ environmentId, key, cutoffMs: RECEIVED_AT }]);
    expect(await stores[0].consents.apply(change)).toBe('fenced');
    expect(await stores[0].rebuild.loadConsents([change])).toEqual(['fenced']);
    expect(await stores[0].consents.read(change.environmentId, change.identityKey)).toBeNull();
    expect(await stores[0].consents.apply({ ...change, receivedAt: RECEIVED_AT + 1 })).toBe('applied');
  });

  it('forget removes only consents that are unchanged since they were read', async () => {
    const { stores } = await open();
    const [erased, kept, changed] = [createChange(), createChange(), createChange()];
    const { environmentId } = erased;
    await rebuildConsents(stores[0].rebuild, [
      erased,
      ...[kept, changed].map((change) => ({ ...change, environmentId })),
    ]);
    const read = await stores[0].consents.readStored(environmentId, [
      erased.identityKey,
      changed.identityKey,
      newKey(),
    ]);
    expect(read.map(({ identityKey }) => identityKey)).toEqual([erased.identityKey, changed.identityKey]);
    const position = { ...changed.position, offset: changed.position.offset + 1 };
    expect(await stores[0].consents.apply({ ...changed, environmentId, position })).toBe('applied');
    expect(await stores[0].consents.forget(environmentId, read)).toBe(1);
    expect(await stores[0].consents.forget(environmentId, read)).toBe(0);
    expect(await stores[1].consents.read(environmentId, erased.identityKey)).toBeNull();
    for (const { identityKey } of [kept, changed])
      expect(await stores[1].consents.read(environmentId, identityKey)).not.toBeNull();
  });

  it('without an epoch, consents can be rebuilt but neither read nor applied', async () => {
    const { stores, deleteEpoch } = await open();
    const change = createChange();
    expect(await stores[0].ready()).toBe(true);
    await deleteEpoch();
    await expect(stores[0].consents.read(change.environmentId, change.identityKey)).rejects.toThrow(MissingEpochFault);
    await expect(stores[0].consents.apply(change)).rejects.toThrow(MissingEpochFault);
    expect(await stores[0].ready()).toBe(false);
    expect(await rebuildConsents(stores[0].rebuild, [change])).toEqual({ applied: 1, superseded: 0, fenced: 0 });
  });

  it('a rebuild from unordered history restores the latest consents, even while a gateway writes', async () => {
    const { stores } = await open();
    const identities = Array.from({ length: 30 }, () => createChange());
    const rows = identities.flatMap((identity, i) =>
      Array.from({ length: 100 }, (_, offset) => {
        const status = (['none', 'anonymous', 'full'] as const)[(offset + i) % 3]!;
        return { ...identity, status, position: at(offset * 7 + i) };
      }),
    );
    const live = { ...identities[0]!, status: 'none' as const, position: at(100_000) };
    const [rebuilt] = await Promise.all([
      rebuildConsents(stores[0].rebuild, shuffle(rows)),
      stores[1].consents.apply(live),
    ]);
    expect(rebuilt.applied + rebuilt.superseded).toBe(rows.length);
    expect(await stores[1].consents.read(live.environmentId, live.identityKey)).toMatchObject({
      status: 'none',
      position: live.position,
    });
    for (const [i, { environmentId, identityKey }] of identities.entries()) {
      if (i === 0) continue;
      const last = rows[i * 100 + 99]!;
      expect(await stores[1].consents.read(environmentId, identityKey)).toMatchObject({
        status: last.status,
        position: last.position,
      });
    }
  });
});

async function* shuffle(rows: readonly LoggedConsent[]): AsyncGenerator<LoggedConsent> {
  yield* rows
    .map((row, i) => ({ row, rank: (i * 7_919) % rows.length }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ row }) => row);
}

it('calls fail immediately while Redis is unavailable', async () => {
  const { consents, guards, ready, close } = await openRedisPeople({ url: 'redis://127.0.0.1:1' });
  await expect(consents.apply(createChange())).rejects.toThrow();
  await expect(consents.read('test-a', newKey())).rejects.toThrow();
  expect(await ready()).toBe(false);
  await expect(
    guards.putHold({ ...createChange(), erasureId: newKey(), keys: [], cutoffMs: 0, lapsesAtMs: null }),
  ).rejects.toThrow();
  await close();
});
