import { randomBytes } from 'node:crypto';
import { TOPICS } from '@playline/contracts';
import { ERASED_TABLES, type ErasureReceipt, recordLogExpiry, removeFromDisk, SWEPT_TABLES } from '@playline/erasure';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { metricsOf } from '../faults/world/metrics.ts';
import { expectErased } from './checks.ts';
import { type OtherPlayers, openOtherPlayers } from './others.ts';
import {
  asPlayer,
  asVisitor,
  awaitStored,
  createPerson,
  fullMessages,
  type Person,
  readRows,
  track,
} from './people.ts';
import { type ErasureRig, openErasureRig } from './rig.ts';
import {
  awaitReplacedFiles,
  expireTopics,
  findInBrokerFiles,
  findInEngineFiles,
  findInLogs,
  findInRedisFiles,
  rewriteAppendOnlyFile,
  speedUpFileRemoval,
} from './store-files.ts';
import { findInBytes, keyNeedles, locationsIn, type Needle, type Trace, textNeedle } from './traces/needle.ts';
import { findInRedis } from './traces/redis.ts';
import { clearingOf, findForbidden } from './traces/registry.ts';
import { findInTables } from './traces/tables.ts';

let rig: ErasureRig;
let otherPlayers: OtherPlayers;
let [erasedPerson, bystander]: Person[] = [];
let needles: Needle[] = [];
let before: { engine: Trace[]; redis: Trace[]; engineFiles: Trace[]; brokerFiles: Trace[]; redisFiles: Trace[] };
let kept: Record<string, string[]>;
let shared: string;
let erasureId: Buffer;
let receipt: ErasureReceipt;

const engineOf = () => rig.world.deployment.engine;
const needlesOf = (person: Person): Needle[] => [
  textNeedle('the token', person.token),
  ...person.keys.flatMap((key, at) => keyNeedles(`key ${at}`, key)),
];

beforeAll(async () => {
  rig = await openErasureRig();
  await speedUpFileRemoval(rig);
  otherPlayers = openOtherPlayers(rig);
  [erasedPerson, bystander] = [createPerson(rig), createPerson(rig)];
  needles = needlesOf(erasedPerson);
  for (const person of [erasedPerson, bystander]) {
    await leaveTraces(person);
    await addUnlinkRow(person);
  }
  shared = await shareDevice(bystander, erasedPerson);
  before = {
    engine: await findInTables(engineOf(), needles),
    redis: await findInRedis(rig.redis, needles),
    engineFiles: await findInEngineFiles(rig, needles),
    brokerFiles: findInBrokerFiles(rig, needles),
    redisFiles: findInRedisFiles(rig, needles),
  };
  kept = await readRows(rig, bystander);
  // Retries, as any client would: this process proxies connections and was busy searching files, so the gateway may
  // have lost its Redis connection and may briefly respond with 500.
  await until('the erasure is accepted', async () => {
    const accepted = await rig.erase(asVisitor(erasedPerson)).catch(() => null);
    if (accepted !== null) erasureId = accepted;
    return accepted !== null;
  });
  receipt = await expectErased(rig, erasureId, erasedPerson.keys);
  // The progress, which contains the closure, is deleted after the receipt is stored.
  const countProgress = async () => Number((await rig.query('SELECT count() FROM erasure_progress'))[0]?.[0]);
  await until('the erasure has ended', async () => (await countProgress()) === 0);
  await otherPlayers.close();
}, 240_000);
afterAll(() => rig?.close(), 60_000);

/** Sends the person's token in every field and request that the API accepts. */
async function leaveTraces(person: Person): Promise<void> {
  const { token, anonymousId } = person;
  const messages = fullMessages(person);
  const headers = { 'user-agent': token, referer: `https://game.example/${token}`, tracestate: `a=${token}` };
  const body = JSON.stringify({ messages });
  const response = await rig.request(`messages?who=${token}`, { method: 'POST', body, headers });
  expect(await response.json()).toMatchObject({ accepted: messages.length });
  const consent = JSON.stringify({ anonymousId, status: 'full', source: `source ${token}` });
  expect((await rig.request('tracking-consent', { method: 'PUT', body: consent })).status).toBe(204);
  await sendRejected(person);
  // Undecodable values become dead letters without changes.
  const value = Buffer.concat([randomBytes(4), Buffer.from(token), person.anonymousKey]);
  const topics = [TOPICS.messages, TOPICS.identityLinks, TOPICS.consents].map(({ name }) => rig.topic(name));
  await rig.log.publish(topics.map((topic) => ({ topic, key: person.userKey, value })));
  await awaitStored(rig, messages);
  await until('the consent is stored', async () => (await readRows(rig, person)).consent_log?.length === 1);
  for (const topic of topics)
    await until('the dead letter is written', async () =>
      (await rig.log.read(`${topic}.dead`)).some((deadLetter) => deadLetter.value?.includes(token)),
    );
}

/** Adds an unlink row in which another identity was split off and the person stayed. */
async function addUnlinkRow({ userKey }: Person): Promise<void> {
  await rig.query(`INSERT INTO identity_unlinks SELECT environment_id, identity_key, 0, 0, 'stayed', now64(3)
    FROM events WHERE identity_key = unhex('${userKey.toString('hex')}') LIMIT 1`);
}

/** Sends rejected messages, a malformed body and an unknown path, all of which contain the token. */
async function sendRejected({ token, anonymousId }: Person): Promise<void> {
  const context = { library: `library ${token}`, libraryVersion: token };
  const invalid = [
    track({ type: token, context }),
    track({ messageId: token, context, anonymousId }),
    track({ eventTimestamp: token, anonymousId }),
    track({ surface: token, consentLevel: token, identityType: token, userId: token }),
    track({ anonymousId: `${token}${'x'.repeat(256)}`, properties: token }),
  ];
  const response = await rig.request('messages', { method: 'POST', body: JSON.stringify({ messages: invalid }) });
  expect(await response.json()).toMatchObject({ rejected: invalid.length });
  await rig.request('messages', { method: 'POST', body: `{"messages":[{"anonymousId":"${token}` });
  await rig.request(`nowhere/${token}`);
  await until('the rejection is stored', async () =>
    Number((await rig.query(`SELECT count() FROM message_rejections WHERE library = 'other'`))[0]?.[0]),
  );
}

/** Sends a message from `player` on the device of `owner`. @returns the message id */
async function shareDevice(player: Person, owner: Person): Promise<string> {
  const message = track({ ...asPlayer(player), ...asVisitor(owner), eventName: 'shared' });
  await rig.send([message]);
  await awaitStored(rig, [message]);
  return message.messageId;
}

it('before the erasure, the search finds the person in every store', () => {
  for (const { name } of ERASED_TABLES) {
    expect(locationsIn(before.engine)).toContain(`table ${name}`);
    expect(locationsIn(before.engineFiles)).toContain(`table ${name}`);
  }
  for (const family of ['i', 'm', 'c'])
    expect(locationsIn(before.redis).map((location) => location.split(':')[0])).toContain(`redis ${family}`);
  const fields = before.engine.filter(({ location, kind }) => location === 'table events' && kind === 'text');
  expect(fields[0]?.count).toBeGreaterThan(6);
  const topics = [TOPICS.messages, TOPICS.identityLinks, TOPICS.consents].map(({ name }) => name);
  const expected = [...topics, ...topics.map((name) => `${name}.dead`)].map((name) => `topic ${name}`);
  expect(locationsIn(before.brokerFiles)).toEqual(expect.arrayContaining(expected));
  expect(before.redisFiles.map(({ kind }) => kind)).toContain('key');
});

it('after an erasure, tables and ClickHouse logs contain only data that the registry allows', async () => {
  const after = await findInTables(engineOf(), needles);
  expect(findForbidden(after)).toEqual([]);
  expect(locationsIn(after)).toContain('table erasure_fences');
});

it("after an erasure, Redis contains only the person's fences", async () => {
  const after = await findInRedis(rig.redis, needles);
  expect(findForbidden(after)).toEqual([]);
  expect(after.map(({ location }) => clearingOf(location))).toContain('kept');
});

it('after an erasure, neither metrics nor logs contain the person', async () => {
  for (const service of Object.values(rig.running)) {
    const text = Buffer.from(await metricsOf(service));
    expect(text.length).toBeGreaterThan(0);
    expect(findInBytes(`metrics of ${service.name}`, text, needles)).toEqual([]);
  }
  expect(findInLogs(rig, needles)).toEqual([]);
});

it('operator commands find no data of an erased person', async () => {
  const environment = ['--project', 'erasure', '--environment', 'production'];
  const subject = [...environment, '--kind', 'passport', '--id', erasedPerson!.userId];
  const queried = keyNeedles('', erasedPerson!.userKey).map(({ bytes }) => bytes.toString('latin1'));
  const unexpected = needles.filter(({ bytes }) => !queried.includes(bytes.toString('latin1')));
  for (const subcommand of [['resolve'], ['members', '--raw'], ['why']]) {
    const { code, stdout, stderr } = await rig.operate('identity', ...subcommand, ...subject, '--json');
    expect([code, findInBytes(subcommand[0]!, Buffer.from(stdout + stderr), unexpected)], stderr).toEqual([0, []]);
    if (subcommand[0] === 'resolve') expect(JSON.parse(stdout)).toMatchObject({ isLinked: false });
  }
});

it('an erasure keeps all rows of other people and blanks the device id in events on a shared device', async () => {
  const now = await readRows(rig, bystander!);
  const changed = (table: string) => kept[table]!.filter((row) => !now[table]!.includes(row));
  for (const { name } of SWEPT_TABLES) {
    expect(now[name]!.length).toBe(kept[name]!.length);
    expect(kept[name]!.length).toBeGreaterThan(0);
    expect(changed(name)).toHaveLength(name === 'events' ? 1 : 0);
  }
  expect(
    await rig.query(
      `SELECT user_id, anonymous_id, hex(anonymous_key), event_name FROM events WHERE message_id = '${shared}'`,
    ),
  ).toEqual([[bystander!.userId, '', '0'.repeat(32), 'shared']]);
  expect(await otherPlayers.missing()).toEqual([]);
  expect(otherPlayers.sent()).toBeGreaterThan(100);
});

it('after the removal from disk, no ClickHouse file contains the person', async () => {
  const { rows, records } = rig;
  const pause = () => awaitReplacedFiles(rig);
  const removal = await removeFromDisk({ rows, records, wallClockMs: Date.now, pause });
  expect(removal).toMatchObject({ foundOnDisk: [], marked: 1, deferred: 0 });
  await awaitReplacedFiles(rig);
  const masked = await findInTables(engineOf(), needles, { deleted: true });
  expect(findForbidden(masked)).toEqual([]);
  expect(findForbidden(await findInEngineFiles(rig, needles))).toEqual([]);
  const bystanderTraces = await findInEngineFiles(rig, needlesOf(bystander!));
  for (const { name } of ERASED_TABLES) expect(locationsIn(bystanderTraces)).toContain(`table ${name}`);
  expect(await rig.receiptOf(erasureId)).toMatchObject({ physicallyErasedAt: expect.any(Number) });
}, 240_000);

it("Redis's rewritten append-only file contains only the person's fences", async () => {
  await rewriteAppendOnlyFile(rig);
  const counts = (traces: Trace[]) => {
    const sums = new Map<string, number>();
    for (const { needle, count } of traces) sums.set(needle, (sums.get(needle) ?? 0) + count);
    return sums;
  };
  const live = await findInRedis(rig.redis, needles);
  expect(findForbidden(live)).toEqual([]);
  expect(counts(findInRedisFiles(rig, needles))).toEqual(counts(live));
  expect(findInRedisFiles(rig, needlesOf(bystander!)).length).toBeGreaterThan(0);
});

it('after expiry, no log segment contains the person, and the receipt records the expiry', async () => {
  await expireTopics(rig);
  await until('no segment contains the person', () => findInBrokerFiles(rig, needles).length === 0);
  const { records, topic, log } = rig;
  const recordExpiryAt = async (atMs: number) => {
    await recordLogExpiry({ records, log: log.reader, topicPrefix: topic(''), wallClockMs: () => atMs });
    return await rig.receiptOf(erasureId);
  };
  // The test forced early retention, but logExpiresAt has not passed yet.
  expect(await recordExpiryAt(Date.now())).toEqual({ ...receipt, physicallyErasedAt: expect.any(Number) });
  const logExpiredAt = receipt.logExpiresAt;
  expect(await recordExpiryAt(logExpiredAt)).toMatchObject({ closureHash: receipt.closureHash, logExpiredAt });
}, 180_000);
