import { beforeEach, describe, expect, it } from 'vitest';
import { AFTER, BEFORE, createRowsOf, newBatch, newEnvironment, newKey, sweepAll, T } from '../test/people.ts';
import { beginErasure, openMemoryUpkeep, putErased, type UpkeepHarness } from '../test/upkeep.ts';
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

/** People with these links and consents; `epochs` are returned in turn. */
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

describe('verifyReceipt', () => {
  let upkeep: UpkeepHarness;
  beforeEach(async () => {
    upkeep = await openMemoryUpkeep();
  });

  const verify = async (id: Buffer, over: Partial<Parameters<typeof verifyReceipt>[0]> = {}) => {
    const { harness, records } = upkeep;
    const verified = await verifyReceipt({ rows: harness.rows, records, wallClockMs, checkDisk: false, ...over }, id);
    expect(await harness.rows.readBatches()).toEqual([]);
    return verified as Verification;
  };

  it('a receipt is verified when every store is empty', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey()];
    const id = await putErased(upkeep.records, { environmentId, keys });
    // Of another person, and later than the cut-off.
    const { event } = createRowsOf(environmentId);
    await upkeep.harness.add('events', event({ name: 'other', identity_key: newKey() }));
    await upkeep.harness.add(
      'events',
      event({ name: 'new', identity_key: keys[0], event_time: AFTER, received_at: AFTER }),
    );
    const verified = await verify(id, { people: createPeople({}) });
    const remaining = { ...NOTHING, 'redis.i': 0, 'redis.c': 0 };
    expect(verified).toMatchObject({ identities: 2, hash: 'matches', laterErasures: [], remaining, onDisk: null });
    expect(isVerified(verified)).toBe(true);
    expect((await verify(id)).remaining).toEqual(NOTHING);
    expect(await verify(newKey())).toBeNull();
  });

  it('remaining rows are counted by table, and the receipt is not verified', async () => {
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

  it('links and consents up to the cut-off are counted, later ones are not', async () => {
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

  it('an empty or rebuilt Redis is a fault', async () => {
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

  it('deleted rows in files fail a receipt that has physicallyErasedAt', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await upkeep.harness.add('events', createRowsOf(environmentId).event({ name: 'own', identity_key: key }));
    const batch = newBatch();
    await upkeep.harness.rows.putTargets(batch, [{ environmentId, key, cutoffMs: T }]);
    await sweepAll(upkeep.harness.rows, batch);
    await upkeep.harness.rows.dropTargets(batch);
    const id = await putErased(upkeep.records, { environmentId, keys: [key] });
    const verified = await verify(id, { checkDisk: true });
    expect(verified).toMatchObject({ remaining: NOTHING, onDisk: { ...NOTHING, 'clickhouse.events': 1 } });
    expect(isVerified(verified)).toBe(true);
    await upkeep.records.putReceipts([{ ...verified.receipt, physicallyErasedAt: T + 20_000 }]);
    expect(isVerified(await verify(id, { checkDisk: true }))).toBe(false);
    expect(isVerified(await verify(id))).toBe(true);
    await upkeep.harness.rows.removeDeleted();
    const clean = await verify(id, { checkDisk: true });
    expect(clean.onDisk).toEqual(NOTHING);
    expect(isVerified(clean)).toBe(true);
  });

  /** As after a merge, in which the later fence replaces the first. */
  const folded = (keys: readonly Buffer[], first: Buffer) => ({
    ...upkeep.records,
    readFences: async function* () {
      for await (const fence of upkeep.records.readFences())
        if (!(fence.erasureId.equals(first) && keys.some((key) => key.equals(fence.key)))) yield fence;
    } as typeof upkeep.records.readFences,
  });

  it('the keys of a person who was erased again come from the request, with the first cut-off', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey()];
    const id = await putErased(upkeep.records, { environmentId, keys });
    const later = await beginErasure(upkeep.records, { environmentId, keys, cutoffMs: AFTER + 5_000 });
    await upkeep.harness.add('events', createRowsOf(environmentId).event({ name: 'left', identity_key: keys[1] }));
    // Covered by the second erasure only.
    const between = { identity_key: keys[1], event_time: AFTER, received_at: AFTER };
    await upkeep.harness.add('events', createRowsOf(environmentId).event({ name: 'between', ...between }));
    const verified = await verify(id, { records: folded(keys, id) });
    expect(verified).toMatchObject({ identities: 2, hash: 'matches', laterErasures: [later] });
    expect(verified.remaining['clickhouse.events']).toBe(1);
  });

  it('the keys of joint requests come from the fences of either', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey(), newKey()];
    const id = await putErased(upkeep.records, { environmentId, keys, requested: keys.slice(0, 1) });
    const twin = await putErased(upkeep.records, { environmentId, keys });
    await upkeep.harness.add('events', createRowsOf(environmentId).event({ name: 'left', identity_key: keys[2] }));
    const verified = await verify(id, { records: folded(keys, id) });
    expect(verified).toMatchObject({ identities: 3, hash: 'matches', laterErasures: [twin] });
    expect(verified.remaining['clickhouse.events']).toBe(1);
  });

  it('a receipt is not verified while a later erasure has taken over its keys', async () => {
    const environmentId = newEnvironment();
    const keys = [newKey(), newKey(), newKey()];
    const id = await putErased(upkeep.records, { environmentId, keys, requested: keys.slice(0, 1) });
    // With an identity linked since.
    const later = await beginErasure(upkeep.records, { environmentId, keys: [...keys, newKey()], cutoffMs: AFTER });
    const verified = await verify(id, { records: folded(keys, id) });
    expect(verified).toMatchObject({ identities: 1, hash: 'incomplete', laterErasures: [later], remaining: NOTHING });
    expect(isVerified(verified)).toBe(false);
  });

  it('a differing hash is reported', async () => {
    const environmentId = newEnvironment();
    const person = { environmentId, keys: [newKey()], cutoffMs: BEFORE };
    const id = await putErased(upkeep.records, { ...person, receipt: { closureHash: Buffer.alloc(32, 7) } });
    const verified = await verify(id);
    expect(verified).toMatchObject({ identities: 1, hash: 'differs' });
    expect(isVerified(verified)).toBe(false);
  });

  it('a receipt without known keys is a fault', async () => {
    const keys = [newKey()];
    const id = await putErased(upkeep.records, { environmentId: newEnvironment(), keys });
    const records = { ...folded(keys, id), readRequests: async () => [] };
    await expect(verify(id, { records })).rejects.toMatchObject({ name: 'StoreFault', code: 'NO_TARGETS' });
  });

  it('a failed count is a fault', async () => {
    const id = await putErased(upkeep.records, { environmentId: newEnvironment(), keys: [newKey()] });
    const away = async () => Promise.reject(new Error('the store is away'));
    const { rows } = upkeep.harness;
    await expect(verify(id, { rows: { ...rows, findSurvivors: away } })).rejects.toThrow('away');
    const onDisk = { checkDisk: true, rows: { ...rows, findOnDisk: away } };
    await expect(verify(id, onDisk)).rejects.toThrow('away');
    const people = { ...createPeople({}), consents: { readStored: away } };
    await expect(verify(id, { people })).rejects.toThrow('away');
    expect(await rows.readBatches()).toEqual([]);
  });
});
