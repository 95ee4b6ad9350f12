import { randomBytes } from 'node:crypto';
import { TOPICS, toUuidText } from '@playline/contracts';
import { hashClosure } from '@playline/erasure';
import { openErasureRecords } from '@playline/erasure/clickhouse';
import { createGraphFact, createIdentityKeyer, createIsBlocked, type People } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { openOwnStores, openRedisDatabase } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runProgram } from '../test/run-program.ts';

const T = Date.UTC(2026, 5, 15);
const ENVIRONMENT = 'erasures-development';
const keyOf = createIdentityKeyer(Buffer.alloc(32, 5));
const toGraphFact = createGraphFact({ keyOf, isBlocked: createIsBlocked() });

let stores: Awaited<ReturnType<typeof openOwnStores>>;
let database: Awaited<ReturnType<typeof openRedisDatabase>>;
let people: People;
let records: ReturnType<typeof openErasureRecords>;
let operate: (...args: string[]) => ReturnType<typeof runProgram>;

beforeAll(async () => {
  stores = await openOwnStores();
  database = await openRedisDatabase();
  const { prefix } = stores;
  const topics = { linkTopic: prefix + TOPICS.identityLinks.name, consentTopic: prefix + TOPICS.consents.name };
  people = await openRedisPeople({ url: database.url, ...topics });
  await people.rebuild.mintEpoch();
  // A restarted Redis refuses consent queries until it is in sync.
  const { run } = await people.consents.syncState();
  await people.consents.markCurrent(run, new Map());
  const environment = stores.environment;
  records = openErasureRecords({
    url: environment.CLICKHOUSE_URL!,
    user: environment.CLICKHOUSE_USER!,
    password: environment.CLICKHOUSE_PASSWORD!,
    database: environment.CLICKHOUSE_DATABASE!,
  });
  operate = (...args) => runProgram({ ...environment, REDIS_URL: database.url }, ['erasures', ...args]);
});
afterAll(async () => {
  await records.close();
  await people.close();
  await database.close();
  await stores.close();
});

async function erase() {
  const names = [randomBytes(4).toString('hex'), randomBytes(4).toString('hex')] as const;
  const keys = [keyOf(ENVIRONMENT, 'anonymous', names[0]), keyOf(ENVIRONMENT, 'steam', names[1])];
  const shared = { erasureId: randomBytes(16), environmentId: ENVIRONMENT, cutoffAt: T, traceId: 'd'.repeat(32) };
  await records.putRequests([{ ...shared, subjectKeys: keys, memberKeys: [], requestedAt: T - 2_000 }]);
  await records.putFences(keys.map((key) => ({ ...shared, key, cutoffMs: T })));
  await records.putReceipts([
    {
      ...shared,
      closureHash: hashClosure(keys),
      closureCount: 2,
      acceptedAt: T - 2_000,
      fencedAt: T + 1,
      visiblyErasedAt: T + 2,
      physicallyErasedAt: null,
      logExpiresAt: T + 3,
      logExpiredAt: null,
      deleted: {},
      verified: {},
      logEnds: {},
    },
  ]);
  return { id: toUuidText(shared.erasureId), keys, names };
}

async function link([anonymous, steam]: readonly [string, string], receivedAt: number): Promise<void> {
  const source = { generation: 0, partition: 0 };
  const offset = (await people.graph.lastApplied(source)) + 1;
  const ids = { messageId: randomBytes(16), traceId: 'e'.repeat(32), environmentId: ENVIRONMENT };
  const sides = { fromKind: 'anonymous', fromId: anonymous, toKind: 'steam', toId: steam } as const;
  const fact = { ...ids, ...sides, link: 'identify', receivedAt, eventTime: receivedAt } as const;
  await people.graph.apply({
    ...source,
    after: offset - 1,
    through: offset,
    facts: [toGraphFact({ ...fact, unlink: [] }, offset)],
  });
}

const insertEvent = (key: Buffer) =>
  stores.query(`INSERT INTO events (environment_id, event_name, event_time, received_at, message_id, identity_key)
    VALUES ('${ENVIRONMENT}', 'a', ${T}, ${T}, generateUUIDv4(), unhex('${key.toString('hex')}'))`);

it('erasures verify ignores data after the cut-off, and erasures scrub deletes remaining data from before the cut-off', async () => {
  const [clean, remaining] = [await erase(), await erase()];
  await link(clean.names, T + 60_000);
  await insertEvent(remaining.keys[1]!);
  await link(remaining.names, T);
  const consent = {
    environmentId: ENVIRONMENT,
    status: 'full',
    position: { partition: 0, offset: 1, loggedAtMs: T },
  } as const;
  await people.consents.apply({ ...consent, identityKey: remaining.keys[0]!, receivedAt: T });
  await people.consents.apply({ ...consent, identityKey: remaining.keys[1]!, receivedAt: T + 1 });
  const none = {
    'clickhouse.events': 0,
    'clickhouse.identity_links': 0,
    'clickhouse.identity_overrides': 0,
    'clickhouse.identity_unlinks': 0,
    'clickhouse.consent_log': 0,
    'clickhouse.identity_days': 0,
    'clickhouse.identities': 0,
    'clickhouse.session_days': 0,
    'redis.i': 0,
    'redis.c': 0,
  };
  const cases = [
    [clean, 0, none],
    [remaining, 1, { ...none, 'clickhouse.events': 1, 'redis.i': 2, 'redis.c': 1 }],
  ] as const;
  for (const [{ id, keys }, code, found] of cases) {
    const result = await operate('verify', id, '--json');
    expect({ code: result.code, result: JSON.parse(result.out) }).toMatchObject({
      code,
      result: { erasureId: id, left: found, isVerified: code === 0, hash: 'matches', identities: 2 },
    });
    for (const key of keys) expect(result.out + result.err).not.toContain(key.toString('hex'));
  }
  const scrubbed = await operate('scrub');
  expect(scrubbed.code).toBe(1);
  for (const [what, count] of Object.entries({ 'rows in events': 1, 'linked identities': 2, consents: 1 }))
    expect(scrubbed.out).toMatch(new RegExp(`FOUND +${what}.* of ${ENVIRONMENT}.*: ${count}\n`));
  // Consents received after the cut-off remain, and the restored fences exclude earlier data.
  expect((await people.consents.readStored(ENVIRONMENT, remaining.keys)).map(({ receivedAt }) => receivedAt)).toEqual([
    T + 1,
  ]);
  await link(remaining.names, T);
  expect(await people.graph.membersOf(ENVIRONMENT, remaining.keys[0]!)).toEqual([]);
  expect(await operate('verify', remaining.id)).toMatchObject({ code: 0 });
});
