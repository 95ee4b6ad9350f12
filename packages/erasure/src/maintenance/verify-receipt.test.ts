import { beforeEach, describe, expect, it } from 'vitest';
import { AFTER, BEFORE, createRowsOf, newBatch, newEnvironment, newKey, sweepAll, T } from '../test/people.ts';
import { beginErasure, type ErasureStores, openMemoryStores, putErased } from '../test/stores.ts';
import { type ErasedPeople, isVerified, type Verification, verifyReceipt } from './verify-receipt.ts';

const wallClockMs = () => T + 24 * 3_600_000;
const NO_ROWS = {
  'clickhouse.events': 0,
  'clickhouse.identity_links': 0,
  'clickhouse.identity_overrides': 0,
  'clickhouse.identity_unlinks': 0,
  'clickhouse.consent_log': 0,
  'clickhouse.identity_days': 0,
  'clickhouse.identities': 0,
  'clickhouse.session_days': 0,
};

/** Creates a people store with these links and consents. Each call of `readEpoch` returns the next epoch. */
function createPeople(known: { linked?: [Buffer, number][]; stored?: [Buffer, number][]; epochs?: (string | null)[] }) {
  const epochs = known.epochs ?? [];
  const people: ErasedPeople = {
    readEpoch: async () => (epochs.length > 0 ? epochs.shift()! : 'one'),
    graph: {
      rootOf: async (_, key) => (known.linked?.some(([each]) => each.equals(key)) ? key : null),
      membersOf: async () => (known.linked ?? []).map(([key, linkedAt]) => ({ key, linkedAt })),
    },
    consents: {
      readStored: async (_, keys) =>
        (known.stored ?? []).flatMap(([each, receivedAt]) =>
          keys.some((key) => each.equals(key)) ? [{ receivedAt }] : [],
        ),
    },
  };
  return people;
}

describe('verifyReceipt', () => {
  let stores: ErasureStores;
  beforeEach(async () => {
    stores = await openMemoryStores();
  });

  const verify = async (id: Buffer, over: Partial<Parameters<typeof verifyReceipt>[0]> = {}) => {
    const { harness, records } = stores;
    const verified = await verifyReceipt({ rows: harness.rows, records, wallClockMs, checkDisk: false, ...over }, id);
    expect(await harness.rows.readBatches()).toEqual([]);
    return verified as Verification;
  };

  it('a receipt is verified if no store contains data up to the cut-off', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey()];
    const id = await putErased(stores.records, { environmentId, keys });
    const { event } = createRowsOf(environmentId);
    await stores.harness.add('events', event({ name: 'other', identity_key: newKey() }));
    await stores.harness.add(
      'events',
      event({ name: 'new', identity_key: keys[0], event_time: AFTER, received_at: AFTER }),
    );
    const verified = await verify(id, { people: createPeople({}) });
    const remaining = { ...NO_ROWS, 'redis.i': 0, 'redis.c': 0 };
    expect(verified).toMatchObject({ identities: 2, hash: 'matches', laterErasures: [], remaining, onDisk: null });
    expect(isVerified(verified)).toBe(true);
    expect((await verify(id)).remaining).toEqual(NO_ROWS);
    expect(await verify(newKey())).toBeNull();
  });

  it('remaining rows are counted per table, and the receipt is not verified', async () => {
    const environmentId = newEnvironment();
    const [one, other] = [newKey(), newKey()];
    const id = await putErased(stores.records, { environmentId, keys: [one, other] });
    const { event, link } = createRowsOf(environmentId);
    await stores.harness.add('events', event({ name: 'own', identity_key: one }));
    await stores.harness.add('events', event({ name: 'shared', identity_key: newKey(), anonymous_key: other }));
    await stores.harness.add('identity_links', link({ name: 'link', a_key: other }));
    const verified = await verify(id);
    expect(verified.remaining).toEqual({ ...NO_ROWS, 'clickhouse.events': 2, 'clickhouse.identity_links': 1 });
    expect(isVerified(verified)).toBe(false);
  });

  it('only links and consents up to the cut-off are counted', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey(), newKey()] as const;
    const id = await putErased(stores.records, { environmentId, keys });
    const [old, back] = keys;
    const both: [Buffer, number][] = [
      [old, T],
      [back, AFTER],
    ];
    const verified = await verify(id, { people: createPeople({ linked: both, stored: both }) });
    expect(verified.remaining).toEqual({ ...NO_ROWS, 'redis.i': 1, 'redis.c': 1 });
    expect(isVerified(verified)).toBe(false);
    const returned: [Buffer, number][] = [[back, AFTER]];
    expect(isVerified(await verify(id, { people: createPeople({ linked: returned, stored: returned }) }))).toBe(true);
  });

  it('verification fails if Redis is empty or was rebuilt', async () => {
    const id = await putErased(stores.records, { environmentId: newEnvironment(), keys: [newKey()] });
    for (const epochs of [
      [null, null],
      [null, 'two'],
      ['one', null],
      ['one', 'two'],
    ])
      await expect(verify(id, { people: createPeople({ epochs }) })).rejects.toMatchObject({ code: 'NO_EPOCH' });
    expect(await stores.harness.rows.readBatches()).toEqual([]);
  });

  it('a receipt that has physicallyErasedAt is not verified if files contain deleted rows', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await stores.harness.add('events', createRowsOf(environmentId).event({ name: 'own', identity_key: key }));
    const batch = newBatch();
    await stores.harness.rows.putTargets(batch, [{ environmentId, key, cutoffMs: T }]);
    await sweepAll(stores.harness.rows, batch);
    await stores.harness.rows.dropTargets(batch);
    const id = await putErased(stores.records, { environmentId, keys: [key] });
    const verified = await verify(id, { checkDisk: true });
    expect(verified).toMatchObject({ remaining: NO_ROWS, onDisk: { ...NO_ROWS, 'clickhouse.events': 1 } });
    expect(isVerified(verified)).toBe(true);
    await stores.records.putReceipts([{ ...verified.receipt, physicallyErasedAt: T + 20_000 }]);
    expect(isVerified(await verify(id, { checkDisk: true }))).toBe(false);
    expect(isVerified(await verify(id))).toBe(true);
    await stores.harness.rows.removeDeleted();
    const clean = await verify(id, { checkDisk: true });
    expect(clean.onDisk).toEqual(NO_ROWS);
    expect(isVerified(clean)).toBe(true);
  });

  /** Simulates a merge in which a later fence replaces the first. */
  const withMergedFences = (keys: readonly Buffer[], first: Buffer) => ({
    ...stores.records,
    readFences: async function* () {
      for await (const fence of stores.records.readFences())
        if (!(fence.erasureId.equals(first) && keys.some((key) => key.equals(fence.key)))) yield fence;
    } as typeof stores.records.readFences,
  });

  it('after a second erasure, the keys are read from the first request and its cut-off applies', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey()];
    const id = await putErased(stores.records, { environmentId, keys });
    const later = await beginErasure(stores.records, { environmentId, keys, cutoffMs: AFTER + 5_000 });
    await stores.harness.add('events', createRowsOf(environmentId).event({ name: 'left', identity_key: keys[1] }));
    const between = { identity_key: keys[1], event_time: AFTER, received_at: AFTER };
    await stores.harness.add('events', createRowsOf(environmentId).event({ name: 'between', ...between }));
    const verified = await verify(id, { records: withMergedFences(keys, id) });
    expect(verified).toMatchObject({ identities: 2, hash: 'matches', laterErasures: [later] });
    expect(verified.remaining['clickhouse.events']).toBe(1);
  });

  it('if two requests concern the same person, keys are read from the fences of both requests', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey(), newKey()];
    const id = await putErased(stores.records, { environmentId, keys, requested: keys.slice(0, 1) });
    const duplicate = await putErased(stores.records, { environmentId, keys });
    await stores.harness.add('events', createRowsOf(environmentId).event({ name: 'left', identity_key: keys[2] }));
    const verified = await verify(id, { records: withMergedFences(keys, id) });
    expect(verified).toMatchObject({ identities: 3, hash: 'matches', laterErasures: [duplicate] });
    expect(verified.remaining['clickhouse.events']).toBe(1);
  });

  it('a receipt is not verified if a later erasure has replaced its fences', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey(), newKey()];
    const id = await putErased(stores.records, { environmentId, keys, requested: keys.slice(0, 1) });
    // The later erasure includes a newly linked identity.
    const later = await beginErasure(stores.records, { environmentId, keys: [...keys, newKey()], cutoffMs: AFTER });
    const verified = await verify(id, { records: withMergedFences(keys, id) });
    expect(verified).toMatchObject({ identities: 1, hash: 'incomplete', laterErasures: [later], remaining: NO_ROWS });
    expect(isVerified(verified)).toBe(false);
  });

  it('a hash mismatch is reported', async () => {
    const environmentId = newEnvironment();
    const person = { environmentId, keys: [newKey()], cutoffMs: BEFORE };
    const id = await putErased(stores.records, { ...person, receipt: { closureHash: Buffer.alloc(32, 7) } });
    const verified = await verify(id);
    expect(verified).toMatchObject({ identities: 1, hash: 'differs' });
    expect(isVerified(verified)).toBe(false);
  });

  it('verification fails if no key is known', async () => {
    const keys = [newKey()];
    const id = await putErased(stores.records, { environmentId: newEnvironment(), keys });
    const records = { ...withMergedFences(keys, id), readRequests: async () => [] };
    await expect(verify(id, { records })).rejects.toMatchObject({ name: 'StoreFault', code: 'NO_TARGETS' });
  });

  it('verification fails if a count fails', async () => {
    const id = await putErased(stores.records, { environmentId: newEnvironment(), keys: [newKey()] });
    const failingCall = async () => Promise.reject(new Error('the store is unavailable'));
    const { rows } = stores.harness;
    await expect(verify(id, { rows: { ...rows, findSurvivors: failingCall } })).rejects.toThrow('unavailable');
    const onDisk = { checkDisk: true, rows: { ...rows, findOnDisk: failingCall } };
    await expect(verify(id, onDisk)).rejects.toThrow('unavailable');
    const people = { ...createPeople({}), consents: { readStored: failingCall } };
    await expect(verify(id, { people })).rejects.toThrow('unavailable');
    expect(await rows.readBatches()).toEqual([]);
  });
});
