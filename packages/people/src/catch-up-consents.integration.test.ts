import { randomBytes } from 'node:crypto';
import { consentCodec, frameRecord } from '@playline/contracts';
import { testRedis } from '@playline/testkit';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import {
  type ChosenStatus,
  type ConsentBytes,
  type ConsentLog,
  catchUpConsents,
  LaggingStoreFault,
  type LoggedConsent,
} from './consents.ts';
import { MissingEpochFault } from './people.ts';
import { openTestPeople } from './test/test-people.ts';

const SCHEMA_ID = 7;
const ENVIRONMENT = 'test-catch-up';
const testPeople = openTestPeople();
const { redis } = testPeople;
afterAll(testPeople.close);

/** A log with three partitions, selected by the first byte of the identity key. */
function createLog(): ConsentLog & {
  add(identityKey: Buffer, status: ChosenStatus): Change;
  read: ConsentLog['read'];
} {
  const partitions: ConsentBytes[][] = [[], [], []];
  return {
    add: (identityKey, status) => {
      const partition = identityKey[0]! % partitions.length;
      const fields = { environmentId: ENVIRONMENT, identityKey, status, receivedAt: 1_790_000_000_000 };
      const value = frameRecord(SCHEMA_ID, consentCodec.encode({ ...fields, source: 'test', traceId: 'e'.repeat(32) }));
      const offset = partitions[partition]!.length;
      partitions[partition]!.push({ offset, timestampMs: fields.receivedAt + offset, value });
      return { ...fields, position: { partition, offset, loggedAtMs: fields.receivedAt + offset } };
    },
    bounds: async () => partitions.map((records, partition) => ({ partition, start: 0, end: records.length })),
    async *read({ partition, start, end }) {
      yield* partitions[partition]!.slice(start, end);
    },
    schemaOf: async () => consentCodec.schema,
  };
}
type Change = LoggedConsent;

async function open() {
  const { people, namespace } = await testPeople.open({ consentTopic: 'consents' });
  await people.rebuild.mintEpoch();
  const dump = async () => {
    const names = await redis.keys(`${namespace}*`);
    return Promise.all(names.map(async (name) => [name, (await redis.dumpBuffer(name))!] as const));
  };
  return {
    store: people.consents,
    namespace,
    dump,
    /** Simulates a Redis restart that restores an earlier dump. */
    restartFrom: async (copy: Awaited<ReturnType<typeof dump>>) => {
      await testPeople.clear(namespace);
      for (const [name, value] of copy) await redis.restore(name, 0, value);
      await redis.hset(`${namespace}c:log:consents`, 'run', 'the previous run');
    },
  };
}

const keys = Array.from({ length: 4 }, (_, at) => Buffer.from([at, ...randomBytes(15)]));
const steps = fc.array(
  fc.record({
    key: fc.constantFrom(...keys),
    status: fc.constantFrom('none', 'anonymous', 'full'),
    /** Number of later changes that are logged before this change is applied. Some changes are never applied. */
    appliedAfter: fc.nat(6),
  }),
  { minLength: 1, maxLength: 40 },
);

describe('catchUpConsents', () => {
  it('catch-up restores the latest logged consents after any data loss and any order of application', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.nat(40), fc.boolean(), async (changes, lostFrom, wasCurrent) => {
        const [{ store, dump, restartFrom }, log] = [await open(), createLog()];
        if (wasCurrent) await catchUpConsents(store, log);
        const waiting: { change: Change; at: number }[] = [];
        let copy = await dump();
        for (const [at, { key, status, appliedAfter }] of changes.entries()) {
          waiting.push({ change: log.add(key, status), at: at + appliedAfter });
          for (const due of waiting.filter((each) => each.at <= at)) await store.apply(due.change);
          if (at <= lostFrom) copy = await dump();
        }
        await restartFrom(copy);
        await catchUpConsents(store, log);
        for (const key of keys) {
          const latest = changes.findLast((change) => change.key === key);
          expect((await store.read(ENVIRONMENT, key))?.status).toBe(latest?.status);
        }
      }),
      { numRuns: 40 },
    );
  });

  // A cell without changes has no offset, so that more changes are read.
  const inOneCell = it.skipIf(testRedis().cells !== undefined);

  inOneCell('a restarted store applies changes but rejects reads until it has caught up', async () => {
    const { store, dump, restartFrom } = await open();
    const log = createLog();
    await catchUpConsents(store, log);
    const first = log.add(keys[0]!, 'full');
    await store.apply(first);
    await restartFrom(await dump());
    await expect(store.read(ENVIRONMENT, keys[0]!)).rejects.toThrow(LaggingStoreFault);
    expect(await store.apply(log.add(keys[0]!, 'none'))).toBe('applied');
    await expect(store.read(ENVIRONMENT, keys[0]!)).rejects.toThrow(LaggingStoreFault);
    expect((await store.syncState()).applied.get(0)).toBe(0);
    expect(await catchUpConsents(store, log)).toBe(2);
    expect(await store.read(ENVIRONMENT, keys[0]!)).toMatchObject({ status: 'none' });
    expect(await catchUpConsents(store, log)).toBeNull();
  });

  inOneCell('catch-up starts 10,000 offsets before the last applied offset', async () => {
    const { store, dump, restartFrom } = await open();
    const log = createLog();
    await catchUpConsents(store, log);
    for (let count = 0; count < 12_000; count++) log.add(keys[0]!, 'none');
    await store.apply(log.add(keys[0]!, 'full'));
    await restartFrom(await dump());
    for (let count = 0; count < 5; count++) log.add(keys[0]!, 'none');
    expect(await catchUpConsents(store, log)).toBe(10_000 + 6);
    expect(await store.read(ENVIRONMENT, keys[0]!)).toMatchObject({ status: 'none' });
  });

  it('a store that restarts during catch-up or has been emptied is not marked as current', async () => {
    const { store, namespace } = await open();
    const log = createLog();
    log.add(keys[0]!, 'full');
    const restarted = { ...store, syncState: async () => ({ ...(await store.syncState()), run: 'the previous run' }) };
    await expect(catchUpConsents(restarted, log)).rejects.toThrow('Redis was restarted');
    expect((await store.syncState()).isCurrent).toBe(false);
    await redis.del(`${namespace}identity:epoch`);
    await expect(catchUpConsents(store, log)).rejects.toThrow(MissingEpochFault);
    expect((await store.syncState()).isCurrent).toBe(false);
  });

  it('catch-up skips unreadable records', async () => {
    const { store } = await open();
    const log = createLog();
    const records = [
      null,
      Buffer.from('text'),
      frameRecord(SCHEMA_ID, Buffer.from([255])),
      frameRecord(9, Buffer.alloc(3)),
    ];
    const unreadable: ConsentLog = {
      bounds: async () => [{ partition: 0, start: 0, end: records.length }],
      async *read() {
        for (const [offset, value] of records.entries()) yield { offset, timestampMs: 1, value };
      },
      schemaOf: async (id) => (id === SCHEMA_ID ? log.schemaOf(id) : null),
    };
    expect(await catchUpConsents(store, unreadable)).toBe(records.length);
    expect(await store.read(ENVIRONMENT, keys[0]!)).toBeNull();
  });
});
