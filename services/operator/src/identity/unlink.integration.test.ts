import { randomBytes } from 'node:crypto';
import { type IdentityLinkRecord, identityLinkCodec, TOPICS } from '@playline/contracts';
import { messageRecordOf, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type LinkParts, openRebuildFixture, type RebuildFixture } from '../test/rebuild-fixture.ts';

// Linkers and writers start as processes, which takes long on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

const ENVIRONMENT = 'unlink-development';
/** Group of the linkers after the loss of Redis. */
const LATER_GROUP = `later-${randomBytes(4).toString('hex')}`;
const YESTERDAY_MS = Date.now() - 24 * 60 * 60 * 1000;

let fixture: RebuildFixture;
let linker: Awaited<ReturnType<RebuildFixture['startLinker']>>;

type Kind = LinkParts['fromKind'];
const hex = (kind: Kind, id: string) => fixture.keyOf(ENVIRONMENT, kind, id).toString('hex');
const of = (kind: Kind, id: string) => ['--environment', ENVIRONMENT, '--kind', kind, '--id', id];
const query = async (...args: string[]) => {
  const { code, results, progress } = await fixture.restore('identity', ...args, '--json');
  return { code, rows: results.map((line) => JSON.parse(line)), progress };
};

/** An alias of a steam id and an e-mail address, as a gateway publishes it. */
const alias = (from: string, to: string, receivedAt: number): IdentityLinkRecord => ({
  environmentId: ENVIRONMENT,
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
      key: Buffer.from(ENVIRONMENT),
    })),
  );
const settled = async () => {
  await fixture.decided();
  await fixture.written(TOPICS.identityDecisions.name);
};
const personsOfEvents = async () =>
  (
    await fixture.query(`SELECT event_name, lower(hex(person_key)) FROM events_identified
      WHERE environment_id = '${ENVIRONMENT}' ORDER BY event_name`)
  )
    .split('\n')
    .map((line) => line.split('\t'));
const outcomesBetween = async () =>
  (await query('why', ...of('steam', 'bob'), '--other-key', hex('email', 'eve'))).rows.map(
    ({ link, outcome, reason }) => [link, outcome, reason],
  );

/** All facts that were published yesterday. */
let yesterday: IdentityLinkRecord[];

beforeAll(async () => {
  fixture = await openRebuildFixture();
  expect(await fixture.restore('identity', 'init')).toMatchObject({ code: 0 });
  await fixture.startWriter();
  linker = await fixture.startLinker();
  yesterday = [alias('bob', 'bob', YESTERDAY_MS), alias('bob', 'eve', YESTERDAY_MS), alias('eve', 'eve', YESTERDAY_MS)];
  await publishFacts(yesterday);
  const events = (['steam', 'email'] as const).flatMap((kind) =>
    ['bob', 'eve'].map((id) => {
      const key = fixture.keyOf(ENVIRONMENT, kind, id);
      return messageRecordOf(`${kind}-${id}`, { environmentId: ENVIRONMENT, userKey: key, identityKey: key });
    }),
  );
  await fixture.publish(events.map(fixture.toMessage));
  await settled();
  await fixture.written(TOPICS.messages.name);
}, 240_000);
afterAll(() => fixture.close());

/** Empties Redis, with a linker group that has committed nothing: after the rebuild all facts are read again. */
async function loseRedis(): Promise<void> {
  await fixture.stop(linker.child, 'SIGTERM');
  const held = await fixture.dump();
  expect(Object.keys(held).some((name) => name.startsWith('u:'))).toBe(true);
  await fixture.wipe();
  const groups = ['--linker-group', LATER_GROUP, '--writer-group', fixture.group, '--decide-again'];
  expect((await fixture.restore('identity', 'rebuild', ...groups)).code).toBe(0);
  expect(await fixture.dump()).toEqual(held);
  linker = await fixture.startLinker({ CONSUMER_GROUP: LATER_GROUP });
  await decidedAgain();
  const graphOf = (dump: Record<string, string[]>) => Object.entries(dump).filter(([name]) => /^[imu]:/.test(name));
  expect(graphOf(await fixture.dump())).toEqual(graphOf(held));
}

async function decidedAgain(): Promise<void> {
  const isCaughtUp = () => fixture.isCaughtUp(TOPICS.identityLinks.name, LATER_GROUP);
  await until('the linkers have all facts', isCaughtUp, 60_000);
  await fixture.written(TOPICS.identityDecisions.name);
}

it('identity unlink splits a wrong merge in graph, tables and views; earlier facts do not undo it, repeated or after a rebuild', async () => {
  const before = await personsOfEvents();
  expect(before.map(([name]) => name)).toEqual(['email-bob', 'email-eve', 'steam-bob', 'steam-eve']);
  expect(new Set(before.map(([, person]) => person)).size).toBe(1);

  const named = [...of('steam', 'eve'), '--kind', 'email', '--id', 'eve'];
  const { code, rows } = await query('unlink', ...named, '--yes');
  expect({ code, rows }).toMatchObject({ code: 0, rows: [{ outcome: 'unlinked', reason: '' }] });
  await settled();
  const { split, stayed } = rows[0];
  expect(split.keys).toEqual([hex('steam', 'eve'), hex('email', 'eve')].sort());
  const apart = [
    ['email-bob', stayed.personKey],
    ['email-eve', split.personKey],
    ['steam-bob', stayed.personKey],
    ['steam-eve', split.personKey],
  ];
  expect(await personsOfEvents()).toEqual(apart);
  for (const name of [of('steam', 'bob'), of('email', 'eve')])
    expect((await query('resolve', ...name)).rows).toMatchObject([{ agrees: true }]);

  // A client repeats yesterday's messages.
  await publishFacts(yesterday);
  await settled();
  expect(await personsOfEvents()).toEqual(apart);
  expect(await outcomesBetween()).toEqual([
    ['alias', 'linked', ''],
    ['unlink', 'unlinked', ''],
    ['alias', 'refused', 'unlinked'],
  ]);

  await loseRedis();
  expect(await personsOfEvents()).toEqual(apart);

  // A later message is new information about them.
  await publishFacts([alias('bob', 'eve', Date.now() + 1)]);
  await decidedAgain();
  expect(new Set((await personsOfEvents()).map(([, person]) => person)).size).toBe(1);
});
