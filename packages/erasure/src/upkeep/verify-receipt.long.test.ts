import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AFTER, BEFORE, createRowsOf, newBatch, newEnvironment, newKey, sweepAll, T } from '../test/people.ts';
import { beginErasure, openClickHouseUpkeep, openMemoryUpkeep, putErased, type UpkeepHarness } from '../test/upkeep.ts';
import { type ErasedPeople, isVerified, type Verification, verifyReceipt } from './verify-receipt.ts';

const wallClockMs = () => T + 24 * 3_600_000;
const NOTHING = {
  'clickhouse.events': 0,
  'clickhouse.identity_links': 0,
  'clickhouse.identity_overrides': 0,
  'clickhouse.identity_unlinks': 0,
  'clickhouse.consent_log': 0,
  'clickhouse.identity_days': 0,
  'clickhouse.identities': 0,
};

const STORES = [
  ['memory', openMemoryUpkeep],
  ['clickhouse', openClickHouseUpkeep],
] as const;

/** A store of people that knows these links and consents, and whose epoch a test may take away. */
function createPeople(known: { linked?: [Buffer, number][]; chose?: [Buffer, number][]; epochs?: (string | null)[] }) {
  const epochs = known.epochs ?? [];
  const people: ErasedPeople = {
    readEpoch: async () => (epochs.length > 0 ? epochs.shift()! : 'one'),
    graph: {
      rootOf: async (_, key) => (known.linked?.some(([each]) => each.equals(key)) ? key : null),
      membersOf: async () => (known.linked ?? []).map(([key, linkedAt]) => ({ key, linkedAt })),
    },
    consents: {
      readStored: async (_, keys) =>
        (known.chose ?? []).flatMap(([each, receivedAt]) =>
          keys.some((key) => each.equals(key)) ? [{ receivedAt }] : [],
        ),
    },
  };
  return people;
}

describe.each(STORES)('the check of a receipt against %s', (_name, open: () => Promise<UpkeepHarness>) => {
  let upkeep: UpkeepHarness;
  beforeAll(async () => {
    upkeep = await open();
  });
  afterAll(() => upkeep.close());

  const verify = async (id: Buffer, over: Partial<Parameters<typeof verifyReceipt>[0]> = {}) => {
    const { harness, records } = upkeep;
    const verified = await verifyReceipt({ rows: harness.rows, records, wallClockMs, checkDisk: false, ...over }, id);
    expect(await harness.rows.readBatches()).toEqual([]);
    return verified as Verification;
  };

  it('answers with every place that it looked into, and passes when nothing is left', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey()];
    const id = await putErased(upkeep.records, { environmentId, keys });
    // Of somebody else, and of the person after the erasure.
    const { event } = createRowsOf(environmentId);
    await upkeep.harness.add('events', event({ name: 'other', identity_key: newKey() }));
    await upkeep.harness.add(
      'events',
      event({ name: 'new', identity_key: keys[0], event_time: AFTER, received_at: AFTER }),
    );
    const verified = await verify(id, { people: createPeople({}) });
    const left = { ...NOTHING, 'redis.i': 0, 'redis.c': 0 };
    expect(verified).toMatchObject({ identities: 2, hash: 'matches', laterErasures: [], left, onDisk: null });
    expect(isVerified(verified)).toBe(true);
    expect((await verify(id)).remaining).toEqual(NOTHING);
    expect(await verify(newKey())).toBeNull();
  });

  it('counts what is left in each place, and does not pass', async () => {
    const environmentId = newEnvironment();
    const [one, other] = [newKey(), newKey()];
    const id = await putErased(upkeep.records, { environmentId, keys: [one, other] });
    const { event, link } = createRowsOf(environmentId);
    await upkeep.harness.add('events', event({ name: 'own', identity_key: one }));
    await upkeep.harness.add('events', event({ name: 'shared', identity_key: newKey(), anonymous_key: other }));
    await upkeep.harness.add('identity_links', link({ name: 'link', a_key: other }));
    const verified = await verify(id);
    expect(verified.remaining).toEqual({ ...NOTHING, 'clickhouse.events': 2, 'clickhouse.identity_links': 1 });
    expect(isVerified(verified)).toBe(false);
  });

  it('counts links and consents from before the cut-off, and none that came behind it', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey(), newKey()] as const;
    const id = await putErased(upkeep.records, { environmentId, keys });
    const [old, back] = keys;
    const both: [Buffer, number][] = [
      [old, T],
      [back, AFTER],
    ];
    const verified = await verify(id, { people: createPeople({ linked: both, chose: both }) });
    expect(verified.remaining).toEqual({ ...NOTHING, 'redis.i': 1, 'redis.c': 1 });
    expect(isVerified(verified)).toBe(false);
    const returned: [Buffer, number][] = [[back, AFTER]];
    expect(isVerified(await verify(id, { people: createPeople({ linked: returned, chose: returned }) }))).toBe(true);
  });

  it('takes no count from a store of people that is empty, or that was rebuilt meanwhile', async () => {
    const id = await putErased(upkeep.records, { environmentId: newEnvironment(), keys: [newKey()] });
    for (const epochs of [
      [null, null],
      [null, 'two'],
      ['one', null],
      ['one', 'two'],
    ])
      await expect(verify(id, { people: createPeople({ epochs }) })).rejects.toMatchObject({ code: 'NO_EPOCH' });
    expect(await upkeep.harness.rows.readBatches()).toEqual([]);
  });

  it('finds deleted rows in files when it is asked to, and blames a receipt for them that says they are gone', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await upkeep.harness.add('events', createRowsOf(environmentId).event({ name: 'own', identity_key: key }));
    const batch = newBatch();
    await upkeep.harness.rows.putTargets(batch, [{ environmentId, key, cutoffMs: T }]);
    await sweepAll(upkeep.harness.rows, batch);
    await upkeep.harness.rows.dropTargets(batch);
    const id = await putErased(upkeep.records, { environmentId, keys: [key] });
    const verified = await verify(id, { checkDisk: true });
    expect(verified).toMatchObject({ left: NOTHING, onDisk: { ...NOTHING, 'clickhouse.events': 1 } });
    expect(isVerified(verified)).toBe(true);
    await upkeep.records.putReceipts([{ ...verified.receipt, physicallyErasedAt: T + 20_000 }]);
    expect(isVerified(await verify(id, { checkDisk: true }))).toBe(false);
    expect(isVerified(await verify(id))).toBe(true);
    await upkeep.harness.rows.removeDeleted();
    const clean = await verify(id, { checkDisk: true });
    expect(clean.onDisk).toEqual(NOTHING);
    expect(isVerified(clean)).toBe(true);
  });

  /** The later fence has taken the place of the first one, as in a store that has folded the two. */
  const folded = (keys: readonly Buffer[], first: Buffer) => ({
    ...upkeep.records,
    readFences: async function* () {
      for await (const fence of upkeep.records.readFences())
        if (!(fence.erasureId.equals(first) && keys.some((key) => key.equals(fence.key)))) yield fence;
    } as typeof upkeep.records.readFences,
  });

  it('knows the keys of a person who was erased again by the request, and looks up to the first cut-off', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey()];
    const id = await putErased(upkeep.records, { environmentId, keys });
    const later = await beginErasure(upkeep.records, { environmentId, keys, cutoffMs: AFTER + 5_000 });
    await upkeep.harness.add('events', createRowsOf(environmentId).event({ name: 'left', identity_key: keys[1] }));
    // Between the two: the second erasure's to sweep.
    const between = { identity_key: keys[1], event_time: AFTER, received_at: AFTER };
    await upkeep.harness.add('events', createRowsOf(environmentId).event({ name: 'between', ...between }));
    const verified = await verify(id, { records: folded(keys, id) });
    expect(verified).toMatchObject({ identities: 2, hash: 'matches', laterErasures: [later] });
    expect(verified.remaining['clickhouse.events']).toBe(1);
  });

  it('knows the keys of requests that were done together by the fences of the one that bear them', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey(), newKey()];
    const id = await putErased(upkeep.records, { environmentId, keys, requested: keys.slice(0, 1) });
    const twin = await putErased(upkeep.records, { environmentId, keys });
    await upkeep.harness.add('events', createRowsOf(environmentId).event({ name: 'left', identity_key: keys[2] }));
    const verified = await verify(id, { records: folded(keys, id) });
    expect(verified).toMatchObject({ identities: 3, hash: 'matches', laterErasures: [twin] });
    expect(verified.remaining['clickhouse.events']).toBe(1);
  });

  it('says that a hash cannot be checked of which a later erasure has taken keys over, and does not pass', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey(), newKey()];
    const id = await putErased(upkeep.records, { environmentId, keys, requested: keys.slice(0, 1) });
    // With somebody who was linked to them since.
    const later = await beginErasure(upkeep.records, { environmentId, keys: [...keys, newKey()], cutoffMs: AFTER });
    const verified = await verify(id, { records: folded(keys, id) });
    expect(verified).toMatchObject({ identities: 1, hash: 'incomplete', laterErasures: [later], left: NOTHING });
    expect(isVerified(verified)).toBe(false);
  });

  it('tells a list of keys that is not the one that was erased', async () => {
    const environmentId = newEnvironment();
    const person = { environmentId, keys: [newKey()], cutoffMs: BEFORE };
    const id = await putErased(upkeep.records, { ...person, receipt: { closureHash: Buffer.alloc(32, 7) } });
    const verified = await verify(id);
    expect(verified).toMatchObject({ identities: 1, hash: 'differs' });
    expect(isVerified(verified)).toBe(false);
  });

  it('is a fault when no key is known any more: nothing was looked for', async () => {
    const keys = [newKey()];
    const id = await putErased(upkeep.records, { environmentId: newEnvironment(), keys });
    const records = { ...folded(keys, id), readRequests: async () => [] };
    await expect(verify(id, { records })).rejects.toMatchObject({ name: 'StoreFault', code: 'NO_TARGETS' });
  });

  it('is a fault when a count cannot be made, never nothing', async () => {
    const id = await putErased(upkeep.records, { environmentId: newEnvironment(), keys: [newKey()] });
    const away = async () => Promise.reject(new Error('the store is away'));
    const { rows } = upkeep.harness;
    await expect(verify(id, { rows: { ...rows, findSurvivors: away } })).rejects.toThrow('away');
    const onDisk = { isDiskLookedAt: true, rows: { ...rows, findOnDisk: away } };
    await expect(verify(id, onDisk)).rejects.toThrow('away');
    const people = { ...createPeople({}), consents: { readStored: away } };
    await expect(verify(id, { people })).rejects.toThrow('away');
    expect(await rows.readBatches()).toEqual([]);
  });
});
