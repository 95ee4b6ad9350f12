import { randomBytes } from 'node:crypto';
import { consentCodec, type IdentityDecisionRecord, identityDecisionCodec, TOPICS } from '@playline/contracts';
import { messageRecordOf } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LogFixture, openLogFixture } from '../test/log-fixture.ts';
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

/** A log with everything that is no fault: copies, unreadable records, transaction markers. */
beforeAll(async () => {
  fixture = await openLogFixture();
  const { publish, toMessage, toRecord, prefix, startWriter, caughtUp, query } = fixture;
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
  for (const topic of [TOPICS.messages, TOPICS.identityDecisions, TOPICS.consents]) await caughtUp(topic.name);
  await fixture.stop(writer, 'SIGTERM');
  for (const table of ['events', 'identity_links']) await query(`OPTIMIZE TABLE ${table} FINAL`);
});
afterAll(() => fixture.close());

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
/** Copies rows by hand, without the writer. */
const insertAgain = (what: string, eventName: string) =>
  fixture.query(
    `INSERT INTO events SETTINGS insert_deduplicate = 0 SELECT ${what} FROM events WHERE event_name = '${eventName}'`,
  );

it('verify explains every record: copies that were folded, dead letters, decisions published twice', async () => {
  const { code, sum } = await verify();
  expect(code).toBe(0);
  expect(sum(({ rows }) => rows)).toBe(302);
  expect(sum(({ excused }) => excused.copy)).toBe(21);
  expect(sum(({ excused }) => excused.deadLetter)).toBe(2);
  expect(sum(({ excused }) => excused.copy, 'identity_links')).toBe(1);
  expect(sum(({ rows }) => rows, 'consent_log')).toBe(1);
});

it('verify finds a lost row and its offset', async () => {
  const [partition, offset] = await offsetOf('event 100');
  await fixture.query("DELETE FROM events WHERE event_name = 'event 100'");
  const { code, partitions } = await verify();
  expect(code).toBe(1);
  const found = partitions.find((each) => each.table === 'events' && each.partition === partition);
  expect(found).toMatchObject({ lost: 1, examples: [{ kind: 'lost', start: offset, end: offset + 1 }] });
  const { lines } = await fixture.operate('verify', '--group', fixture.group);
  const at = `--group ${fixture.group} --topic ${found!.topic} --partition ${partition}`;
  expect(lines.join('\n')).toMatch(
    new RegExp(
      `lost: ${found!.topic}/${partition} ${offset}: .*\\n.*: npm run offsets -- accept ${at} --from ${offset} --yes`,
    ),
  );
});

it('verify explains the missing rows of an erased person by the fence, and those of no one else', async () => {
  await fixture.query(`DELETE FROM events WHERE event_name = 'of an erased person'`);
  const before = await verify();
  await fixture.query(
    `INSERT INTO erasure_fences (environment_id, identity_key, cutoff_at) VALUES ('test-log', unhex('${erased.toString('hex')}'), now64(3) + INTERVAL 10 YEAR)`,
  );
  const { sum } = await verify();
  expect(before.sum(({ lost }) => lost)).toBe(2);
  expect(sum(({ lost }) => lost)).toBe(1);
  expect(sum(({ excused }) => excused.fence)).toBe(1);
});

it('verify counts a message with two raw rows and one in events_exact, which is no difference', async () => {
  // A merge would remove the copy before the check.
  await fixture.query('SYSTEM STOP MERGES events');
  const before = await verify();
  await insertAgain('*', 'event 105');
  const { partitions, sum } = await verify();
  expect(sum(({ repeatedRecords }) => repeatedRecords)).toBe(1);
  expect(sum(({ doubledRows }) => doubledRows)).toBe(0);
  expect(partitions.flatMap(({ examples }) => examples)).toEqual(before.partitions.flatMap(({ examples }) => examples));
  const { lines } = await fixture.operate('verify', '--group', fixture.group);
  expect(lines.join('\n')).toContain(
    '1 records have more than one raw row in events and one in events_exact: they were read twice',
  );
});

it('verify finds a message twice in events_exact, two messages at one offset, and rows after the end of the log', async () => {
  const [partition, offset] = await offsetOf('event 101');
  await insertAgain("* REPLACE (toFixedString(unhex(repeat('ab', 16)), 16) AS identity_key)", 'event 101');
  const position = `kafka_partition = ${partition} AND kafka_offset = ${offset}`;
  expect((await fixture.query(`SELECT count() FROM events_exact WHERE ${position}`)).trim()).toBe('2');
  await insertAgain('* REPLACE (generateUUIDv4() AS message_id)', 'event 102');
  await insertAgain('* REPLACE (kafka_offset + 1000000 AS kafka_offset)', 'event 103');
  const { code, sum, partitions } = await verify();
  expect(code).toBe(1);
  expect(sum(({ doubledRows }) => doubledRows)).toBe(1);
  expect(sum(({ overlapping }) => overlapping)).toBe(1);
  expect(sum(({ futureRows }) => futureRows)).toBe(1);
  const examplesOf = (kind: string) =>
    partitions.flatMap(({ partition, examples }) =>
      examples.filter((example) => example.kind === kind).map(({ start }) => [partition, start]),
    );
  expect(examplesOf('doubled')).toEqual([[partition, offset]]);
  expect(examplesOf('overlapping')).toEqual([await offsetOf('event 102')]);
});

it('verify names a derived table that has drifted from events, and the command that repairs it', async () => {
  const unfounded = async () => {
    const { code, lines } = await fixture.operate('verify', '--group', fixture.group);
    const output =
      /^identity_days has drifted from events: .*, (\d+) rows without an event; repair it with npm run derive$/m;
    return { code, rows: Number(output.exec(lines.join('\n'))?.[1] ?? 0) };
  };
  const { rows } = await unfounded();
  const key = "toFixedString(unhex(repeat('cd', 16)), 16)";
  await fixture.query(`INSERT INTO identity_days VALUES ('test-log', ${key}, '2026-01-01', 'invented', false)`);
  expect(await unfounded()).toEqual({ code: 1, rows: rows + 1 });
});

it('verify fails when the group has committed nothing', async () => {
  const { code, lines } = await fixture.operate('verify', '--group', 'test-unknown');
  expect({ code, lines }).toEqual({ code: 1, lines: [] });
});
