import { randomBytes } from 'node:crypto';
import { type IdentityLinkRecord, identityLinkCodec, TOPICS } from '@playline/contracts';
import { createQueryRows } from '@playline/stores';
import { messageRecordOf, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createAddresses } from '../addresses.ts';
import { configSchema } from '../config.ts';
import { type LinkParts, openRebuildFixture, type RebuildFixture } from '../test/rebuild-fixture.ts';
import { createIdentityTables } from './tables.ts';

// Starting the linker and writer processes can be slow on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

const ENVIRONMENT = 'queries-development';
const TOPICS_READ = ['audience.identity-decisions.v1', 'audience.messages.v1'];

let fixture: RebuildFixture;
let writer: Awaited<ReturnType<RebuildFixture['startWriter']>>;
let linker: Awaited<ReturnType<RebuildFixture['startLinker']>>;

type Kind = LinkParts['fromKind'];
const key = (kind: Kind, id: string, environmentId = ENVIRONMENT) => fixture.keyOf(environmentId, kind, id);
const hex = (...args: Parameters<typeof key>) => key(...args).toString('hex');
const subjectArgs = (kind: Kind, id: string, environmentId = ENVIRONMENT) => [
  ...['--environment', environmentId, '--kind', kind, '--id', id],
];
const query = async (...args: string[]) => {
  const { code, results, progress } = await fixture.restore('identity', ...args, '--json');
  return { code, rows: results.map((line) => JSON.parse(line)), progress };
};

/** Publishes an identify or alias message and its link fact, like a gateway. */
async function link(parts: Omit<LinkParts, 'environmentId'>): Promise<void> {
  await fixture.publishLinks([{ ...parts, environmentId: ENVIRONMENT }]);
  const [from, to] = [key(parts.fromKind, parts.fromId), key(parts.toKind, parts.toId)];
  const isAlias = parts.link === 'alias';
  const named = isAlias
    ? { fromId: parts.fromId, fromKey: from, toId: parts.toId, toKey: to, anonymousId: '', userId: '' }
    : { anonymousId: parts.fromId, anonymousKey: from, userId: parts.toId, userKey: to, identityKey: to };
  const record = { environmentId: ENVIRONMENT, type: parts.link as 'alias' | 'identify', ...named };
  await fixture.publish([fixture.toMessage(messageRecordOf('', record))]);
}

const identify = (fromId: string, toKind: Kind, toId: string) =>
  link({ link: 'identify', fromKind: 'anonymous', fromId, toKind, toId });

async function awaitCaughtUp(): Promise<void> {
  await fixture.awaitDecided();
  for (const topic of TOPICS_READ) await fixture.awaitWritten(topic);
}

beforeAll(async () => {
  fixture = await openRebuildFixture();
  expect(await fixture.restore('identity', 'init')).toMatchObject({ code: 0 });
  writer = await fixture.startWriter();
  linker = await fixture.startLinker();
  await identify('device', 'steam', 'bob');
  await identify('device', 'steam', 'eve');
  await link({ link: 'alias', fromKind: 'steam', fromId: 'bob', toKind: 'email', toId: 'bob@example.org' });
  await identify('stranger', 'steam', 'zoe');
  await awaitCaughtUp();
}, 240_000);
afterAll(() => fixture.close());

it('identity resolve returns the same person from Redis and from the tables', async () => {
  const { code, rows } = await query('resolve', ...subjectArgs('anonymous', 'device'));
  expect({ code, rows }).toMatchObject({ code: 0, rows: [{ isLinked: true, agrees: true }] });
  const [bob] = (await query('resolve', ...subjectArgs('email', 'bob@example.org'))).rows;
  expect(bob).toMatchObject({ agrees: true, personKey: rows[0].personKey });
  const stored = await fixture.query(`SELECT DISTINCT lower(hex(person_key)) FROM identity_overrides FINAL
    WHERE environment_id = '${ENVIRONMENT}' AND identity_key = unhex('${hex('steam', 'bob')}')`);
  expect(stored).toBe(rows[0].personKey);
  // The link to steam:eve was refused, so steam:eve belongs to a different person.
  const eve = await query('resolve', ...subjectArgs('steam', 'eve'));
  expect(eve.rows).not.toMatchObject([{ personKey: rows[0].personKey }]);
  expect((await query('resolve', ...subjectArgs('steam', 'unknown'))).rows).toMatchObject([
    { isLinked: false, agrees: true },
  ]);
});

it('identity members --raw lists all identities of a person with the raw ids that events contain', async () => {
  const { code, rows } = await query('members', ...subjectArgs('steam', 'bob'), '--raw');
  expect(code).toBe(0);
  expect(rows.map(({ key: found, kind, id }) => [kind, found, id]).sort()).toEqual([
    ['anonymous', hex('anonymous', 'device'), 'device'],
    ['email', hex('email', 'bob@example.org'), 'bob@example.org'],
    ['steam', hex('steam', 'bob'), 'bob'],
    ['untyped', hex('untyped', 'bob'), null],
  ]);
});

it('identity why lists a decision once, even if it is stored twice', async () => {
  await fixture.query(
    'INSERT INTO identity_links SELECT * REPLACE (kafka_offset + 1000 AS kafka_offset) FROM identity_links',
  );
  const { rows } = await query('why', ...subjectArgs('anonymous', 'device'));
  expect(rows.map(({ link: requested, outcome, reason, b }) => [requested, b.kind, outcome, reason])).toEqual([
    ['same_id', 'untyped', 'linked', ''],
    ['identify', 'steam', 'linked', ''],
    ['identify', 'steam', 'refused', 'shared_device'],
    ['alias', 'email', 'linked', ''],
  ]);
  const messages = await fixture.query(`SELECT toString(message_id) FROM identity_links FINAL
    WHERE environment_id = '${ENVIRONMENT}' AND outcome = 'refused'`);
  expect(rows[2]).toMatchObject({ messageId: messages, traceId: 'e'.repeat(32), place: { generation: 0, step: 1 } });
  const newest = await query('why', ...subjectArgs('anonymous', 'device'), '--limit', '1');
  expect(newest.rows).toEqual(rows.slice(-1));
  expect(newest.progress).toContain('older decisions were omitted');
});

it('identity why shows the chain between two identities, and the links requested between two persons', async () => {
  const other = ['--other-kind', 'email', '--other-id', 'bob@example.org'];
  const { rows, progress } = await query('why', ...subjectArgs('anonymous', 'device'), ...other);
  expect(rows.map(({ link: requested }) => requested)).toEqual(['identify', 'alias']);
  expect(progress).toContain('The identities belong to one person, connected by the 2 links');
  // Simulates a rebuild, after which the fact was decided again with a different outcome.
  await fixture.query(`INSERT INTO identity_links SELECT * REPLACE ('unchanged' AS outcome, kafka_offset + 2000 AS kafka_offset)
    FROM identity_links WHERE link = 'alias'`);
  await fixture.query('OPTIMIZE TABLE identity_links FINAL');
  expect((await query('why', ...subjectArgs('anonymous', 'device'), ...other)).rows).toMatchObject([
    { link: 'identify', outcome: 'linked' },
    { link: 'alias', outcome: 'unchanged' },
  ]);
  const eve = await query('why', ...subjectArgs('steam', 'bob'), '--other-key', hex('untyped', 'eve'));
  expect(eve.rows).toMatchObject([{ reason: 'shared_device', b: { key: hex('steam', 'eve') } }]);
  expect(eve.progress).toContain('The identities belong to two persons.');
  expect((await query('why', ...subjectArgs('steam', 'eve'), '--other-key', hex('steam', 'bob'))).rows).toEqual(
    eve.rows,
  );
});

it('identity why cancels a query that exceeds --query-seconds', async () => {
  const queryRows = createQueryRows(createAddresses(configSchema.parse(fixture.environment), '/nowhere').clickhouse());
  const tables = createIdentityTables((sql) =>
    queryRows(sql.replace('PREWHERE', 'PREWHERE sleepEachRow(0.2) = 0 AND')),
  );
  const filter = { keys: [key('steam', 'bob')] };
  const requested = tables.linksOf(ENVIRONMENT, filter, { limit: 10, querySeconds: 1 });
  await expect(requested).rejects.toThrow('the query took longer than 1 s: increase --query-seconds');
});

it('identity resolve reports a lagging event writer until the tables match Redis', async () => {
  await fixture.stop(writer, 'SIGKILL');
  await identify('tablet', 'steam', 'ann');
  await fixture.awaitDecided();
  const [lagging] = (await query('resolve', ...subjectArgs('anonymous', 'tablet'))).rows;
  expect(lagging).toMatchObject({ isLinked: true, agrees: false, stored: null });
  expect(lagging.says).toContain('the event writer is lagging');
  writer = await fixture.startWriter();
  await awaitCaughtUp();
  const agrees = async () => (await query('resolve', ...subjectArgs('anonymous', 'tablet'))).rows[0].agrees === true;
  await until('the tables match Redis', agrees, 60_000);
});

const MERGED = 'unlink-development';
const LATER_GROUP = `later-${randomBytes(4).toString('hex')}`;
const YESTERDAY_MS = Date.now() - 24 * 60 * 60 * 1000;

const alias = (from: string, to: string, receivedAt: number): IdentityLinkRecord => ({
  environmentId: MERGED,
  messageId: randomBytes(16),
  traceId: 'e'.repeat(32),
  link: 'alias',
  unlink: [],
  fromKind: 'steam',
  fromId: from,
  toKind: 'email',
  toId: to,
  eventTime: receivedAt,
  receivedAt,
});
const publishFacts = (facts: readonly IdentityLinkRecord[]) =>
  fixture.publish(
    facts.map((fact) => ({
      ...fixture.toRecord(TOPICS.identityLinks.name, identityLinkCodec, fact),
      key: Buffer.from(MERGED),
    })),
  );
const personsOfEvents = async () =>
  (
    await fixture.query(`SELECT event_name, lower(hex(person_key)) FROM events_identified
      WHERE environment_id = '${MERGED}' ORDER BY event_name`)
  )
    .split('\n')
    .map((line) => line.split('\t'));
const outcomesBetween = async () =>
  (await query('why', ...subjectArgs('steam', 'bob', MERGED), '--other-key', hex('email', 'eve', MERGED))).rows.map(
    ({ link, outcome, reason }) => [link, outcome, reason],
  );

/** Empties and rebuilds Redis, and starts a new linker group, which reads all facts again. */
async function loseRedis(): Promise<void> {
  await fixture.stop(linker.child, 'SIGTERM');
  const dumpBefore = await fixture.dump();
  expect(Object.keys(dumpBefore).some((name) => name.startsWith('u:'))).toBe(true);
  await fixture.wipe();
  const groups = ['--linker-group', LATER_GROUP, '--writer-group', fixture.group, '--decide-again'];
  expect((await fixture.restore('identity', 'rebuild', ...groups)).code).toBe(0);
  expect(await fixture.dump()).toEqual(dumpBefore);
  linker = await fixture.startLinker({ CONSUMER_GROUP: LATER_GROUP });
  await awaitDecidedAgain();
  const graphOf = (dump: Record<string, string[]>) => Object.entries(dump).filter(([name]) => /^[imu]:/.test(name));
  expect(graphOf(await fixture.dump())).toEqual(graphOf(dumpBefore));
}

async function awaitDecidedAgain(): Promise<void> {
  const isCaughtUp = () => fixture.isCaughtUp(TOPICS.identityLinks.name, LATER_GROUP);
  await until('the linkers have processed all facts', isCaughtUp, 60_000);
  await fixture.awaitWritten(TOPICS.identityDecisions.name);
}

it('identity unlink splits a person permanently in the graph, the tables and the views', async () => {
  const yesterday = [
    ['bob', 'bob'],
    ['bob', 'eve'],
    ['eve', 'eve'],
  ].map(([from, to]) => alias(from!, to!, YESTERDAY_MS));
  await publishFacts(yesterday);
  const events = (['steam', 'email'] as const).flatMap((kind) =>
    ['bob', 'eve'].map((id) => {
      const identityKey = key(kind, id, MERGED);
      return messageRecordOf(`${kind}-${id}`, { environmentId: MERGED, userKey: identityKey, identityKey });
    }),
  );
  await fixture.publish(events.map(fixture.toMessage));
  await awaitCaughtUp();
  const before = await personsOfEvents();
  expect(before.map(([name]) => name)).toEqual(['email-bob', 'email-eve', 'steam-bob', 'steam-eve']);
  expect(new Set(before.map(([, person]) => person)).size).toBe(1);

  const named = [...subjectArgs('steam', 'eve', MERGED), '--kind', 'email', '--id', 'eve'];
  const { code, rows } = await query('unlink', ...named, '--yes');
  expect({ code, rows }).toMatchObject({ code: 0, rows: [{ outcome: 'unlinked', reason: '' }] });
  await awaitCaughtUp();
  const { split, stayed } = rows[0];
  expect(split.keys).toEqual([hex('steam', 'eve', MERGED), hex('email', 'eve', MERGED)].sort());
  const splitPersons = [
    ['email-bob', stayed.personKey],
    ['email-eve', split.personKey],
    ['steam-bob', stayed.personKey],
    ['steam-eve', split.personKey],
  ];
  expect(await personsOfEvents()).toEqual(splitPersons);
  for (const name of [subjectArgs('steam', 'bob', MERGED), subjectArgs('email', 'eve', MERGED)])
    expect((await query('resolve', ...name)).rows).toMatchObject([{ agrees: true }]);

  await publishFacts(yesterday);
  await awaitCaughtUp();
  expect(await personsOfEvents()).toEqual(splitPersons);
  expect(await outcomesBetween()).toEqual([
    ['alias', 'linked', ''],
    ['unlink', 'unlinked', ''],
    ['alias', 'refused', 'unlinked'],
  ]);

  await loseRedis();
  expect(await personsOfEvents()).toEqual(splitPersons);

  await publishFacts([alias('bob', 'eve', Date.now() + 1)]);
  await awaitDecidedAgain();
  expect(new Set((await personsOfEvents()).map(([, person]) => person)).size).toBe(1);
});
