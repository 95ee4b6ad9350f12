import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { isLater, type LoggedConsent, rebuildConsents } from './consents.ts';
import type { People } from './people.ts';
import { MissingEpochFault } from './people.ts';
import { openRedisPeople } from './redis/index.ts';
import { openMemoryPeople } from './test/memory/index.ts';
import { openTestPeople } from './test/test-people.ts';

/** A store, a second one on the same content like that of another process, and direct changes by the test. */
interface Harness {
  readonly stores: readonly [People, People];
  loseEpoch(): Promise<void>;
}

const inRedis = openTestPeople();
afterAll(inRedis.close);

async function openRedis(): Promise<Harness> {
  const { people, namespace } = await inRedis.open({ consentTopic: 'consents' });
  const other = await inRedis.open({ namespace, consentTopic: 'consents' });
  await people.rebuild.mintEpoch();
  await people.consents.markCurrent((await people.consents.syncState()).run, new Map());
  return {
    stores: [people, other.people],
    loseEpoch: async () => void (await inRedis.redis.del(`${namespace}identity:epoch`)),
  };
}

async function openMemory(): Promise<Harness> {
  const people = openMemoryPeople();
  await people.rebuild.mintEpoch();
  return { stores: [people, people], loseEpoch: async () => people.loseEpoch() };
}

const newKey = () => randomBytes(16);
const at = (offset: number, partition = 4, loggedAtMs = LOGGED_AT + offset) => ({ partition, offset, loggedAtMs });
const RECEIVED_AT = Date.UTC(2026, 0, 1);
const LOGGED_AT = RECEIVED_AT + 5;

function createChange(fields: Partial<LoggedConsent> = {}): LoggedConsent {
  const own = { environmentId: `test-${randomUUID()}`, identityKey: newKey(), status: 'full' } as const;
  return { ...own, receivedAt: RECEIVED_AT, position: at(0), ...fields };
}

const statuses = fc.constantFrom('none', 'anonymous', 'full');
/** Changes of one partition, each at its own offset, whatever the broker's clock said. */
const changesIn = (partition: number, fromMs: number) =>
  fc.uniqueArray(
    fc.record({
      status: statuses,
      place: fc.record({
        partition: fc.constant(partition),
        offset: fc.nat({ max: 2 ** 40 }),
        loggedAtMs: fc.integer({ min: fromMs, max: fromMs + 3 }),
      }),
    }),
    { minLength: 1, maxLength: 8, selector: ({ place }) => place.offset },
  );
/** Changes of an identity in the log. Partitions may have been added in between. */
const history = fc
  .tuple(changesIn(4, LOGGED_AT), fc.option(changesIn(1, LOGGED_AT + 10), { nil: [] }))
  .map((partitions) => partitions.flat());

describe.each([
  ['memory', openMemory],
  ['redis', openRedis],
])('a consent store in %s', (_name, open) => {
  it('knows nothing of an identity that has chosen nothing', async () => {
    const { stores } = await open();
    expect(await stores[0].consents.read('test-nobody', newKey())).toBeNull();
  });

  it('answers every process with what one of them has applied', async () => {
    const { stores } = await open();
    const change = createChange({ status: 'anonymous', position: at(2 ** 40 + 7, 3) });
    expect(await stores[0].consents.apply(change)).toBe('applied');
    const { status, receivedAt, position: place } = change;
    const stored = await stores[1].consents.read(change.environmentId, change.identityKey);
    expect(stored).toEqual({ status, receivedAt, place });
  });

  it('keeps identities and environments apart', async () => {
    const { stores } = await open();
    const change = createChange();
    await stores[0].consents.apply(change);
    expect(await stores[0].consents.read(change.environmentId, newKey())).toBeNull();
    expect(await stores[0].consents.read(`${change.environmentId}-b`, change.identityKey)).toBeNull();
  });

  it('ends with the latest place, whatever the order and whichever process applies', async () => {
    const { stores } = await open();
    const property = fc.asyncProperty(history, fc.infiniteStream(fc.boolean()), async (changes, turns) => {
      const identity = createChange();
      const latest = changes.reduce((a, b) => (isLater(b.place, a.place) ? b : a));
      const applied = changes.map((change) =>
        stores[turns.next().value ? 0 : 1].consents.apply({ ...identity, ...change }),
      );
      const outcomes = await Promise.all(applied);
      expect(await stores[0].consents.read(identity.environmentId, identity.identityKey)).toMatchObject(latest);
      expect(outcomes[changes.indexOf(latest)]).toBe('applied');
    });
    await fc.assert(property, { numRuns: 60 });
  });

  it('does nothing when the same change comes again, or an earlier one', async () => {
    const { stores } = await open();
    const change = createChange({ position: at(5) });
    await stores[0].consents.apply(change);
    for (const place of [at(5), at(4), at(4, 4, LOGGED_AT + 99), at(9, 5, LOGGED_AT), at(5, 3)])
      expect(await stores[0].consents.apply({ ...change, status: 'none', position: place })).toBe('superseded');
    expect(await stores[0].consents.read(change.environmentId, change.identityKey)).toMatchObject({ status: 'full' });
  });

  it('refuses changes of a fenced identity up to the cut-off, and takes newer ones', async () => {
    const { stores } = await open();
    const change = createChange();
    const { environmentId, identityKey: key } = change;
    await stores[0].guards.fence([{ environmentId, key, cutoffMs: RECEIVED_AT }]);
    expect(await stores[0].consents.apply(change)).toBe('fenced');
    expect(await stores[0].rebuild.loadConsents([change])).toEqual(['fenced']);
    expect(await stores[0].consents.read(change.environmentId, change.identityKey)).toBeNull();
    expect(await stores[0].consents.apply({ ...change, receivedAt: RECEIVED_AT + 1 })).toBe('applied');
  });

  it('forgets the consents it is told to, and no other; nor one that was given anew since it was judged', async () => {
    const { stores } = await open();
    const [erased, kept, anew] = [createChange(), createChange(), createChange()];
    const { environmentId } = erased;
    await rebuildConsents(stores[0].rebuild, [erased, ...[kept, anew].map((change) => ({ ...change, environmentId }))]);
    const judged = await stores[0].consents.readStored(environmentId, [erased.identityKey, anew.identityKey, newKey()]);
    expect(judged.map(({ identityKey }) => identityKey)).toEqual([erased.identityKey, anew.identityKey]);
    const place = { ...anew.position, offset: anew.position.offset + 1 };
    expect(await stores[0].consents.apply({ ...anew, environmentId, position: place })).toBe('applied');
    expect(await stores[0].consents.forget(environmentId, judged)).toBe(1);
    expect(await stores[0].consents.forget(environmentId, judged)).toBe(0);
    expect(await stores[1].consents.read(environmentId, erased.identityKey)).toBeNull();
    for (const { identityKey } of [kept, anew])
      expect(await stores[1].consents.read(environmentId, identityKey)).not.toBeNull();
  });

  it('answers nobody and takes nothing without an epoch, but can be rebuilt', async () => {
    const { stores, loseEpoch } = await open();
    const change = createChange();
    await loseEpoch();
    await expect(stores[0].consents.read(change.environmentId, change.identityKey)).rejects.toThrow(MissingEpochFault);
    await expect(stores[0].consents.apply(change)).rejects.toThrow(MissingEpochFault);
    expect(await stores[0].ready()).toBe(false);
    expect(await rebuildConsents(stores[0].rebuild, [change])).toEqual({ applied: 1, superseded: 0, fenced: 0 });
  });

  it('is the same after a rebuild from the history in any order, also beside a gateway that writes', async () => {
    const { stores } = await open();
    const identities = Array.from({ length: 30 }, () => createChange());
    const rows = identities.flatMap((identity, i) =>
      Array.from({ length: 100 }, (_, offset) => {
        const status = (['none', 'anonymous', 'full'] as const)[(offset + i) % 3]!;
        return { ...identity, status, place: at(offset * 7 + i) };
      }),
    );
    const live = { ...identities[0]!, status: 'none' as const, place: at(100_000) };
    const [rebuilt] = await Promise.all([
      rebuildConsents(stores[0].rebuild, shuffle(rows)),
      stores[1].consents.apply(live),
    ]);
    expect(rebuilt.applied + rebuilt.superseded).toBe(rows.length);
    expect(await stores[1].consents.read(live.environmentId, live.identityKey)).toMatchObject({
      status: 'none',
      place: live.place,
    });
    for (const [i, { environmentId, identityKey }] of identities.entries()) {
      if (i === 0) continue;
      const last = rows[i * 100 + 99]!;
      expect(await stores[1].consents.read(environmentId, identityKey)).toMatchObject({
        status: last.status,
        place: last.place,
      });
    }
  });

  it('is ready while it answers', async () => {
    const { stores } = await open();
    expect(await stores[0].ready()).toBe(true);
  });
});

async function* shuffle(rows: readonly LoggedConsent[]): AsyncGenerator<LoggedConsent> {
  yield* rows
    .map((row, i) => ({ row, rank: (i * 7_919) % rows.length }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ row }) => row);
}

it('consents in Redis fail at once while Redis is away instead of queueing', async () => {
  const { consents, ready, close } = await openRedisPeople({ url: 'redis://127.0.0.1:1' });
  await expect(consents.apply(createChange())).rejects.toThrow();
  await expect(consents.read('test-a', newKey())).rejects.toThrow();
  expect(await ready()).toBe(false);
  await close();
});
