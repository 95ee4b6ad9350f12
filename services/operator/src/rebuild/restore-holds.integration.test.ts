import { randomBytes } from 'node:crypto';
import { type ErasureRequestRecord, erasureRequestCodec, TOPICS } from '@playline/contracts';
import type { ErasureRecords } from '@playline/erasure';
import { openErasureRecords } from '@playline/erasure/clickhouse';
import type { People } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { createQueryRows } from '@playline/stores';
import { createSchemaRegistry, openLogReader } from '@playline/stream/kafka';
import { openRedisDatabase, type RedisDatabase } from '@playline/testkit';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type LogFixture, openLogFixture } from '../test/log-fixture.ts';
import { restoreHolds } from './rebuild-identity.ts';
import type { RebuildSources } from './with-stores.ts';

const CUTOFF = 1_790_000_000_000;
let fixture: LogFixture;
let database: RedisDatabase;
let people: People;
let records: ErasureRecords;
let sources: RebuildSources;
let printed: string[] = [];

beforeAll(async () => {
  fixture = await openLogFixture();
  database = await openRedisDatabase();
  const { prefix: topicPrefix, brokers } = fixture;
  const environment: Record<string, string> = fixture.environment;
  const linkTopic = topicPrefix + TOPICS.identityLinks.name;
  people = await openRedisPeople({ url: database.url, linkTopic, consentTopic: topicPrefix + TOPICS.consents.name });
  const account = {
    url: environment.CLICKHOUSE_URL!,
    user: environment.CLICKHOUSE_USER!,
    password: environment.CLICKHOUSE_PASSWORD!,
    database: environment.CLICKHOUSE_DATABASE!,
  };
  records = openErasureRecords(account);
  const query = createQueryRows(account);
  const { schemaOf } = createSchemaRegistry({ url: environment.SCHEMA_REGISTRY_URL! });
  const log = openLogReader({ brokers, clientId: 'test' });
  const onProgress = (line: string) => void printed.push(line);
  sources = { log, query, records, schemaOf, topicPrefix, writerGroup: fixture.group, onProgress };
}, 120_000);
beforeEach(async () => {
  await database.client.flushdb();
  await people.rebuild.mintEpoch();
  printed = [];
});
afterAll(async () => {
  await people?.close();
  await sources?.log.close();
  await records?.close();
  await fixture?.close();
  await database?.close();
});

function createRequest(changes: Partial<ErasureRequestRecord> = {}): ErasureRequestRecord {
  const keys = { subjectKeys: [randomBytes(16)], memberKeys: [randomBytes(16)] };
  const times = { cutoffAt: CUTOFF, requestedAt: CUTOFF - 2_000 };
  return { erasureId: randomBytes(16), environmentId: 'test-one', ...keys, ...times, traceId: '', ...changes };
}

const publish = (...requests: ErasureRequestRecord[]) =>
  fixture.publish(requests.map((each) => fixture.toRecord(TOPICS.erasures.name, erasureRequestCodec, each)));

const toUuid = (id: Buffer) => id.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');

async function store({ environmentId, erasureId, subjectKeys, memberKeys, cutoffAt }: ErasureRequestRecord) {
  const [subjects, members] = [subjectKeys, memberKeys].map(
    (keys) => `[${keys.map((key) => `unhex('${key.toString('hex')}')`).join()}]`,
  );
  await fixture.query(`INSERT INTO erasure_requests (erasure_id, environment_id, subject_keys, member_keys, cutoff_at)
    VALUES ('${toUuid(erasureId)}', '${environmentId}', ${subjects}, ${members}, fromUnixTimestamp64Milli(${cutoffAt}))`);
}

const finish = ({ erasureId }: ErasureRequestRecord) =>
  fixture.query(`INSERT INTO erasure_receipts (environment_id, erasure_id) VALUES ('x', '${toUuid(erasureId)}')`);

/** Returns, for each key, the time after which links are held, or null if there is no hold. */
const heldFrom = ({ environmentId, subjectKeys, memberKeys }: ErasureRequestRecord) =>
  people.guards.heldFrom(environmentId, [...subjectKeys, ...memberKeys]);

it('restoreHolds restores the holds of erasures without a receipt from the topic and the table', async () => {
  const [onTopic, inTable, done, doneInTable] = [createRequest(), createRequest(), createRequest(), createRequest()];
  // The table contains an additional member, which an earlier erasure of the same person has found.
  const inBoth = createRequest({ memberKeys: [] });
  const merged = { ...inBoth, memberKeys: [randomBytes(16)] };
  await publish(onTopic, inBoth, done);
  for (const request of [inTable, merged, done, doneInTable]) await store(request);
  for (const request of [done, doneInTable]) await finish(request);
  expect(await restoreHolds(sources, people)).toBe(3);
  for (const request of [onTopic, inTable, merged]) expect(await heldFrom(request)).toEqual([CUTOFF, CUTOFF]);
  for (const request of [done, doneInTable]) expect(await heldFrom(request)).toEqual([null, null]);
  const { environmentId } = inTable;
  expect((await people.guards.listHolds(environmentId)).map(({ lapsesAtMs }) => lapsesAtMs)).toEqual([
    null,
    null,
    null,
  ]);
  for (const request of [onTopic, inTable, inBoth]) await finish(request);
});

it('restoreHolds reports invalid requests, and restores all other holds', async () => {
  const valid = createRequest();
  const invalid = [
    createRequest({ cutoffAt: 2 ** 50 }),
    createRequest({ environmentId: 'Env!' }),
    createRequest({ memberKeys: [Buffer.alloc(16)] }),
  ];
  await publish(...invalid, valid);
  expect(await restoreHolds(sources, people)).toBe(1);
  expect(await heldFrom(valid)).toEqual([CUTOFF, CUTOFF]);
  for (const { environmentId } of invalid)
    expect(await people.guards.listHolds(environmentId)).toHaveLength(environmentId === 'test-one' ? 1 : 0);
  const reasons = printed.map(
    (line) => /audience\.erasures\.v1\/\d+\/\d+ is an invalid request \((.+)\)/.exec(line)?.[1],
  );
  expect(reasons.sort()).toEqual(['not an environment id', 'not identity keys', 'time out of range']);
  await finish(valid);
});
