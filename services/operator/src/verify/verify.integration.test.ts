import { randomBytes } from 'node:crypto';
import { consentCodec, type IdentityDecisionRecord, identityDecisionCodec, TOPICS } from '@playline/contracts';
import { openErasureRecords } from '@playline/erasure/clickhouse';
import { openRedisPeople } from '@playline/people/redis';
import { createQueryRows } from '@playline/stores';
import { messageRecordOf, openRedisDatabase } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createAddresses } from '../addresses.ts';
import { configSchema } from '../config.ts';
import { type LogFixture, openLogFixture } from '../test/log-fixture.ts';
import { comparePersons, type PersonsOptions } from './persons.ts';
import type { PartitionReport, VerifyReport } from './report.ts';

let fixture: LogFixture;
const erased = randomBytes(16);
const decision: IdentityDecisionRecord = {
  environmentId: 'test-log',
  generation: 1,
  partition: 0,
  offset: 41,
  step: 0,
  messageId: randomBytes(16),
  link: 'identify',
  aKey: randomBytes(16),
  aKind: 'anonymous',
  bKey: randomBytes(16),
  bKind: 'steam',
  outcome: 'linked',
  reason: '',
  root: randomBytes(16),
  moved: [],
  eventTime: 1_790_000_000_000,
  receivedAt: 1_790_000_000_000,
  traceId: 'trace',
  unlink: null,
};
const consent = {
  environmentId: 'test-log',
  identityKey: randomBytes(16),
  status: 'full' as const,
  source: 'test',
  receivedAt: 1_790_000_000_000,
  traceId: 'trace',
};

/** Creates a log with copies, unreadable records and transaction markers, which are not differences. */
beforeAll(async () => {
  fixture = await openLogFixture();
  const { publish, toMessage, toRecord, prefix, startWriter, awaitCaughtUp, query } = fixture;
  const messages = Array.from({ length: 300 }, (_, index) => messageRecordOf(`event ${index}`));
  const strange = messageRecordOf(`it's "strange" \\ ${'$$'} レベル`, { environmentId: 'test-log' });
  const poison = { topic: prefix + TOPICS.messages.name, key: null, value: Buffer.from('no frame') };
  await publish(messages.map(toMessage));
  await publish([poison, ...messages.slice(0, 20).map(toMessage), toMessage(strange), poison, toMessage(strange)]);
  await publish([toMessage(messageRecordOf('of an erased person', { userKey: erased }))]);
  const link = toRecord(TOPICS.identityDecisions.name, identityDecisionCodec, decision);
  await publish([link]);
  await publish([link]);
  await publish([toRecord(TOPICS.consents.name, consentCodec, consent)]);
  const writer = await startWriter();
  for (const topic of [TOPICS.messages, TOPICS.identityDecisions, TOPICS.consents]) await awaitCaughtUp(topic.name);
  await fixture.stop(writer, 'SIGTERM');
  for (const table of ['events', 'identity_links']) await query(`OPTIMIZE TABLE ${table} FINAL`);
});
afterAll(async () => {
  await options?.people.close();
  await database?.close();
  await fixture.close();
});

async function verify() {
  const { code, json } = await fixture.operate('verify', '--group', fixture.group, '--json');
  const { partitions } = json as VerifyReport;
  const sum = (read: (partition: PartitionReport) => number, table = 'events') =>
    partitions.filter((partition) => partition.table === table).reduce((total, each) => total + read(each), 0);
  return { code, partitions, sum };
}
const offsetOf = async (eventName: string) => {
  const sql = `SELECT kafka_partition, kafka_offset FROM events WHERE event_name = '${eventName}' LIMIT 1`;
  return (await fixture.query(sql)).split('	').map(Number) as [number, number];
};
const insertAgain = (fields: string, eventName: string) =>
  fixture.query(
    `INSERT INTO events SETTINGS insert_deduplicate = 0 SELECT ${fields} FROM events WHERE event_name = '${eventName}'`,
  );

it('verify reports no differences for merged copies, dead letters and decisions that were published twice', async () => {
  const { code, sum } = await verify();
  expect(code).toBe(0);
  expect(sum(({ rows }) => rows)).toBe(302);
  expect(sum(({ excused }) => excused.copy)).toBe(21);
  expect(sum(({ excused }) => excused.deadLetter)).toBe(2);
  expect(sum(({ excused }) => excused.copy, 'identity_links')).toBe(1);
  expect(sum(({ rows }) => rows, 'consent_log')).toBe(1);
});

it('verify fails for a group without committed offsets', async () => {
  const { code, lines } = await fixture.operate('verify', '--group', 'test-unknown');
  expect({ code, lines }).toEqual({ code: 1, lines: [] });
});

it('verify reports derived tables and counts that differ from events, and names the command that repairs them', async () => {
  const key = "toFixedString(unhex(repeat('cd', 16)), 16)";
  await fixture.query(`INSERT INTO identity_days VALUES ('test-log', ${key}, '2026-01-01', 'invented', false)`);
  await fixture.query(`INSERT INTO event_counts (environment_id, step_s, start_at, kind, messages)
    SELECT 'test-log', 3600, toStartOfHour(now()) - INTERVAL 2 HOUR, 'event', 1`);
  const { code, lines } = await fixture.operate('verify', '--group', fixture.group);
  const repair = 'To repair the table, run npm run derive';
  expect([code, ...lines.slice(-2)]).toEqual([
    1,
    `identity_days differs from events (rows missing: 0, rows without an event: 1). ${repair}`,
    `event_counts differs from events (rows missing: 0, rows without an event: 1). ${repair}`,
  ]);
});

it('verify finds exactly the lost, duplicate and overlapping rows, and the rows beyond the end of the log', async () => {
  const { query, group } = fixture;
  const lostPosition = await offsetOf('event 100');
  const doubledPosition = await offsetOf('event 101');
  await query("DELETE FROM events WHERE event_name IN ('event 100', 'of an erased person')");
  await query(
    `INSERT INTO erasure_fences (environment_id, identity_key, cutoff_at) VALUES ('test-log', unhex('${erased.toString('hex')}'), now64(3) + INTERVAL 10 YEAR)`,
  );
  // A merge would remove copies before the check. The copy of event 105 is deduplicated, so it is not a difference.
  await query('SYSTEM STOP MERGES events');
  await insertAgain('*', 'event 105');
  await insertAgain("* REPLACE (toFixedString(unhex(repeat('ab', 16)), 16) AS identity_key)", 'event 101');
  const position = `kafka_partition = ${doubledPosition[0]} AND kafka_offset = ${doubledPosition[1]}`;
  expect((await query(`SELECT count() FROM events_exact WHERE ${position}`)).trim()).toBe('2');
  await insertAgain('* REPLACE (generateUUIDv4() AS message_id)', 'event 102');
  await insertAgain('* REPLACE (kafka_offset + 1000000 AS kafka_offset)', 'event 103');
  const { code, sum, partitions } = await verify();
  expect(code).toBe(1);
  const counts = ['lost', 'repeatedRecords', 'doubledRows', 'overlapping', 'futureRows'] as const;
  expect(counts.map((name) => sum((partition) => partition[name]))).toEqual([1, 1, 1, 1, 1]);
  expect(sum(({ excused }) => excused.fence)).toBe(1);
  const examplesOf = (kind: string) =>
    partitions.flatMap(({ partition, examples }) =>
      examples.filter((example) => example.kind === kind).map(({ start }) => [partition, start]),
    );
  expect(examplesOf('lost')).toEqual([lostPosition]);
  expect(examplesOf('doubled')).toEqual([doubledPosition]);
  expect(examplesOf('overlapping')).toEqual([await offsetOf('event 102')]);
  const text = (await fixture.operate('verify', '--group', group)).lines.join('\n');
  const [topic, [partition, offset]] = [fixture.prefix + TOPICS.messages.name, lostPosition];
  const partitionArgs = `--group ${group} --topic ${topic} --partition ${partition}`;
  expect(text).toMatch(
    new RegExp(
      `lost: ${topic}/${partition} ${offset}: .*\\n.*: npm run offsets -- accept ${partitionArgs} --from ${offset} --yes`,
    ),
  );
  expect(text).toContain(
    'records that were read twice: 1, with more than one raw row in events but one row in events_exact',
  );
  expect(text).toMatch(/^differences: 4$/m);
});

const LINKED_AT = 1_790_000_000_000;
let database: Awaited<ReturnType<typeof openRedisDatabase>>;
let options: PersonsOptions & { readonly people: Awaited<ReturnType<typeof openRedisPeople>> };
let onWait: () => Promise<unknown>;

async function openPersons() {
  database ??= await openRedisDatabase();
  const account = createAddresses(configSchema.parse(fixture.environment), '/nowhere').clickhouse();
  const awaitDecisionsStored = async () => void (await onWait());
  options ??= {
    query: createQueryRows(account),
    records: openErasureRecords(account),
    people: await openRedisPeople({ url: database.url }),
    awaitDecisionsStored,
    onProgress: () => {},
  };
  await database.client.flushdb();
  await fixture.query('TRUNCATE TABLE identity_overrides');
  onWait = async () => {};
}

interface Linked {
  readonly key: Buffer;
  readonly root: Buffer;
}

const link = (root: Buffer, key: Buffer = randomBytes(16)): Linked => ({ key, root });
const putInRedis = (linked: readonly Linked[]) =>
  options.people.rebuild.loadOverrides(
    linked.map((each) => ({ environmentId: 'test-one', kind: 'steam', linkedAt: LINKED_AT, ...each })),
  );
const putInTables = (linked: readonly Linked[], version = 1) =>
  fixture.query(
    `INSERT INTO identity_overrides (environment_id, identity_key, person_key, kind, linked_at, version) VALUES ${linked
      .map(
        ({ key, root }) =>
          `('test-one', unhex('${key.toString('hex')}'), unhex('${root.toString('hex')}'), 'steam', fromUnixTimestamp64Milli(${LINKED_AT}), ${version})`,
      )
      .join()}`,
  );

it('comparePersons reports no difference if the persons match, although the person key has no row', async () => {
  await openPersons();
  const [root, other] = [randomBytes(16), randomBytes(16)];
  await putInRedis([link(root, root), link(root, other)]);
  await putInTables([link(root, other)]);
  expect(await comparePersons(options)).toMatchObject({ compared: 2, different: 0 });
});

it('comparePersons reports different persons, and identities that are missing from Redis or from the tables', async () => {
  await openPersons();
  const [root, before, lost, late] = [
    randomBytes(16),
    link(randomBytes(16)),
    link(randomBytes(16)),
    link(randomBytes(16)),
  ];
  await putInRedis([link(root, before.key), late]);
  await putInTables([before, lost]);
  const { different, examples } = await comparePersons(options);
  const expected = [
    { identityKey: before.key, inRedis: root, inClickHouse: before.root },
    { identityKey: lost.key, inRedis: lost.key, inClickHouse: lost.root },
    { identityKey: late.key, inRedis: late.root, inClickHouse: late.key },
  ].map((difference) => ({
    environmentId: 'test-one',
    identityKey: difference.identityKey.toString('hex'),
    inRedis: difference.inRedis.toString('hex'),
    inClickHouse: difference.inClickHouse.toString('hex'),
  }));
  expect(different).toBe(3);
  expect(examples).toHaveLength(3);
  expect(examples).toEqual(expect.arrayContaining(expected));
});

it('comparePersons does not report a link that the writer stores during the comparison', async () => {
  await openPersons();
  const late = link(randomBytes(16));
  await putInRedis([late]);
  onWait = () => putInTables([late]);
  expect(await comparePersons(options)).toMatchObject({ compared: 1, different: 0, examples: [] });
});

it('comparePersons does not report rows of an erased identity that have not been deleted yet', async () => {
  await openPersons();
  const erased = link(randomBytes(16));
  await putInTables([erased]);
  await fixture.query(
    `INSERT INTO erasure_fences (environment_id, identity_key, cutoff_at) VALUES ('test-one', unhex('${erased.key.toString('hex')}'), fromUnixTimestamp64Milli(${LINKED_AT}))`,
  );
  expect(await comparePersons(options)).toMatchObject({ different: 0 });
});
