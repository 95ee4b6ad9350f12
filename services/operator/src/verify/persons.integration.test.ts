import { randomBytes } from 'node:crypto';
import { openErasureRecords } from '@playline/erasure/clickhouse';
import { openRedisPeople } from '@playline/people/redis';
import { createQueryRows } from '@playline/stores';
import { openOwnStores, openRedisDatabase } from '@playline/testkit';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createAddresses } from '../addresses.ts';
import { configSchema } from '../config.ts';
import { comparePersons, type PersonsOptions } from './persons.ts';

const LINKED_AT = 1_790_000_000_000;

let stores: Awaited<ReturnType<typeof openOwnStores>>;
let database: Awaited<ReturnType<typeof openRedisDatabase>>;
let options: PersonsOptions;
let close: () => Promise<void>;
/** Called when the comparison waits for the writer. */
let onWait: () => Promise<unknown>;

beforeAll(async () => {
  stores = await openOwnStores();
  database = await openRedisDatabase();
  const account = createAddresses(configSchema.parse(stores.environment), '/nowhere').clickhouse();
  const records = openErasureRecords(account);
  const people = await openRedisPeople({ url: database.url });
  const awaitDecisionsStored = async () => void (await onWait());
  options = { query: createQueryRows(account), records, people, awaitDecisionsStored, onProgress: () => {} };
  close = async () => void (await Promise.all([people.close(), records.close()]));
}, 120_000);
beforeEach(async () => {
  await database.client.flushdb();
  await stores.query('TRUNCATE TABLE identity_overrides');
  onWait = async () => {};
});
afterAll(async () => {
  await close?.();
  await Promise.all([stores?.close(), database?.close()]);
});

interface Linked {
  readonly key: Buffer;
  readonly root: Buffer;
}

const link = (root: Buffer, key: Buffer = randomBytes(16)): Linked => ({ key, root });
const inRedis = (linked: readonly Linked[]) =>
  options.people.rebuild.loadOverrides(
    linked.map((one) => ({ environmentId: 'test-one', kind: 'steam', linkedAt: LINKED_AT, ...one })),
  );
const inTables = (linked: readonly Linked[], version = 1) =>
  stores.query(
    `INSERT INTO identity_overrides (environment_id, identity_key, person_key, kind, linked_at, version) VALUES ${linked
      .map(
        ({ key, root }) =>
          `('test-one', unhex('${key.toString('hex')}'), unhex('${root.toString('hex')}'), 'steam', fromUnixTimestamp64Milli(${LINKED_AT}), ${version})`,
      )
      .join()}`,
  );

it('the comparison of persons finds no difference between the same persons, whose own keys need no row', async () => {
  const [root, other] = [randomBytes(16), randomBytes(16)];
  await inRedis([link(root, root), link(root, other)]);
  await inTables([link(root, other)]);
  expect(await comparePersons(options)).toMatchObject({ compared: 2, different: 0 });
});

it('the comparison of persons names an identity with another person in each store, one that Redis lacks, and one that the tables lack', async () => {
  const [root, before, lost, late] = [
    randomBytes(16),
    link(randomBytes(16)),
    link(randomBytes(16)),
    link(randomBytes(16)),
  ];
  await inRedis([link(root, before.key), late]);
  await inTables([before, lost]);
  const { different, examples } = await comparePersons(options);
  const expected = [
    { identityKey: before.key, inRedis: root, inClickHouse: before.root },
    { identityKey: lost.key, inRedis: lost.key, inClickHouse: lost.root },
    { identityKey: late.key, inRedis: late.root, inClickHouse: late.key },
  ].map((one) => ({
    environmentId: 'test-one',
    identityKey: one.identityKey.toString('hex'),
    inRedis: one.inRedis.toString('hex'),
    inClickHouse: one.inClickHouse.toString('hex'),
  }));
  expect(different).toBe(3);
  expect(examples).toHaveLength(3);
  expect(examples).toEqual(expect.arrayContaining(expected));
});

it('the comparison of persons does not report a link whose decision the writer stores during the comparison', async () => {
  const late = link(randomBytes(16));
  await inRedis([late]);
  onWait = () => inTables([late]);
  expect(await comparePersons(options)).toMatchObject({ compared: 1, different: 0, examples: [] });
});

it('the comparison of persons does not report rows of an erased identity that are about to be deleted', async () => {
  const erased = link(randomBytes(16));
  await inTables([erased]);
  await stores.query(
    `INSERT INTO erasure_fences (environment_id, identity_key, cutoff_at) VALUES ('test-one', unhex('${erased.key.toString('hex')}'), fromUnixTimestamp64Milli(${LINKED_AT}))`,
  );
  expect(await comparePersons(options)).toMatchObject({ different: 0 });
});
