import { randomBytes } from 'node:crypto';
import { createKey } from '@playline/access-keys';
import { consentCodec, erasureRequestCodec, FRAME_BYTES, TOPICS } from '@playline/contracts';
import { createIdentityKeyer, type People } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { readTopic } from '@playline/stream/kafka';
import { openStoreProxy, type StoreProxy, testStores, until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { consentChange, erase, getConsent, putConsent } from './test/audience-calls.ts';
import { type GatewayProcess, openProcess, openRealStores, type RealStores } from './test/open-process.ts';

const pepper = randomBytes(32);
const keyOf = createIdentityKeyer(pepper);
let stores: RealStores;
/** The second gateway connects to Redis through `proxy`. */
let gateways: GatewayProcess[];
let proxy: StoreProxy;
let secretKey: string;
let people: People;
let redis: Redis;
const environmentId = () => stores.owner.environmentId;

async function open(environment: Record<string, string> = {}): Promise<GatewayProcess> {
  const opened = await openProcess(stores.topicPrefix, { IDENTITY_PEPPER: pepper.toString('hex'), ...environment });
  await until('the gateway is ready', async () => (await fetch(`${opened.adminUrl}/readyz`)).ok);
  return opened;
}

beforeAll(async () => {
  stores = await openRealStores();
  redis = new Redis(testStores().redis);
  people = await openRedisPeople({ url: testStores().redis });
  await people.rebuild.mintEpoch();
  const context = { store: stores.store, prefix: 'svcapik' };
  secretKey = (await createKey(context, { ...stores.owner, kind: 'secret' })).key;
  const url = new URL(testStores().redis);
  proxy = await openStoreProxy(Number(url.port));
  url.port = String(proxy.port);
  gateways = await Promise.all([open(), open({ REDIS_URL: url.href })]);
  const canReadConsents = async ({ url }: GatewayProcess) => (await getConsent({ url, key: stores.key })).ok;
  for (const gateway of gateways) await until('the gateway returns consents', () => canReadConsents(gateway));
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close()));
  await proxy.close();
  await people.close();
  for await (const names of redis.scanBufferStream({ match: `*{${environmentId()}}*`, count: 10_000 }))
    if ((names as Buffer[]).length > 0) await redis.unlink(...(names as Buffer[]));
  for (const member of await redis.zrangeBuffer('erasure:lapsing', '0', '-1'))
    if (member.toString('latin1').startsWith(`${environmentId()}\0`)) await redis.zrem('erasure:lapsing', member);
  await redis.del(`identity:applied:${environmentId()}-links`);
  redis.disconnect();
  await stores.close();
});

const toCaller = ({ url }: GatewayProcess) => ({ url, key: stores.key });
const statusAt = async (gateway: GatewayProcess, anonymousId: string) =>
  ((await (await getConsent(toCaller(gateway), `?anonymousId=${anonymousId}`)).json()) as { status: string }).status;
const read = (topic: { name: string }) =>
  readTopic({ brokers: testStores().kafka, topic: stores.topicPrefix + topic.name });

/** Reads the latest logged status of each identity key. */
async function readLatestStatuses(): Promise<Map<string, string>> {
  const latest = new Map<string, { offset: number; status: string }>();
  for (const { offset, value } of await read(TOPICS.consents)) {
    const { identityKey, status } = consentCodec.decode(value!.subarray(FRAME_BYTES));
    const name = identityKey.toString('hex');
    if ((latest.get(name)?.offset ?? -1) < offset) latest.set(name, { offset, status });
  }
  return new Map([...latest].map(([name, { status }]) => [name, status]));
}

it('a consent change is readable on both gateways as soon as one of them has returned 204', async () => {
  for (const [index, status] of ['full', 'none', 'anonymous', 'full'].entries()) {
    const gateway = gateways[index % 2]!;
    expect((await putConsent(toCaller(gateway), consentChange({ anonymousId: 'seen', status }))).status).toBe(204);
    for (const other of gateways) expect(await statusAt(other, 'seen')).toBe(status);
  }
});

it('after concurrent consent changes on two gateways, both gateways return the status that was logged last', async () => {
  const ids = Array.from({ length: 40 }, (_, at) => `racing-${at}`);
  const race = ids.flatMap((anonymousId) =>
    (['none', 'anonymous', 'full', 'none', 'full', 'anonymous'] as const).map((status, at) => ({
      gateway: gateways[at % 2]!,
      change: consentChange({ anonymousId, status }),
    })),
  );
  const responses = await Promise.all(race.map(({ gateway, change }) => putConsent(toCaller(gateway), change)));
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([204]));
  const latest = await readLatestStatuses();
  for (const id of ids) {
    const last = latest.get(keyOf(environmentId(), 'anonymous', id).toString('hex'));
    for (const gateway of gateways) expect(await statusAt(gateway, id)).toBe(last);
  }
});

it('a consent change returns 500 if Redis is unavailable after the change was logged, and succeeds when it is retried', async () => {
  const gateway = gateways[1]!;
  const change = consentChange({ anonymousId: 'unlucky', status: 'none' });
  proxy.mode = 'cut';
  expect((await putConsent(toCaller(gateway), change)).status).toBe(500);
  expect((await getConsent(toCaller(gateway))).status).toBe(500);
  const name = keyOf(environmentId(), 'anonymous', 'unlucky').toString('hex');
  expect((await readLatestStatuses()).get(name)).toBe('none');
  proxy.mode = 'open';
  await until('the change is accepted', async () => (await putConsent(toCaller(gateway), change)).status === 204);
  expect(await statusAt(gateways[0]!, 'unlucky')).toBe('none');
});

it('an erasure holds the subject and logs a request with all linked identities', async () => {
  const [subject, member] = [keyOf(environmentId(), 'steam', 'player'), keyOf(environmentId(), 'anonymous', 'device')];
  await linkDirectly(subject, member);
  const before = Date.now();
  const response = await erase({ url: gateways[0]!.url, secretKey }, '?userId=player');
  expect(response.status).toBe(202);
  const id = response.headers.get('x-erasure-id')!.replaceAll('-', '');
  const requests = (await read(TOPICS.erasures)).map(({ value }) =>
    erasureRequestCodec.decode(value!.subarray(FRAME_BYTES)),
  );
  const request = requests.find(({ erasureId }) => erasureId.toString('hex') === id)!;
  expect(request.memberKeys).toEqual([member]);
  expect(request.subjectKeys).toHaveLength(9);
  expect(request.cutoffAt).toBeGreaterThanOrEqual(before + 2000);
  const holds = await Promise.all(request.subjectKeys.map((key) => redis.hget(`h:{${environmentId()}}`, key)));
  expect(new Set(holds)).toEqual(new Set([String(request.cutoffAt)]));
});

it('an erasure parks later links of the subject, but no links of other identities', async () => {
  expect((await erase({ url: gateways[1]!.url, secretKey }, '?anonymousId=held')).status).toBe(202);
  const later = Date.now() + 60_000;
  const keys = (id: string) => [keyOf(environmentId(), 'anonymous', id), keyOf(environmentId(), 'steam', id)] as const;
  expect(await applyLink(keys('held'), later)).toBe('parked');
  expect(await applyLink(keys('free'), later)).toBe('decided');
});

it('a consent change that was received before the cut-off is not applied to a fenced identity', async () => {
  const key = keyOf(environmentId(), 'anonymous', 'erased');
  await putConsent(toCaller(gateways[0]!), consentChange({ anonymousId: 'erased' }));
  await people.guards.fence([{ environmentId: environmentId(), key, cutoffMs: Date.now() + 60_000 }]);
  await redis.hdel(`c:{${environmentId()}}:${key.readUInt16BE(0) >> 2}`, key);
  expect((await putConsent(toCaller(gateways[0]!), consentChange({ anonymousId: 'erased' }))).status).toBe(204);
  expect(await statusAt(gateways[1]!, 'erased')).toBe('not_set');
});

/** Opens the graph and continues at the last applied offset, so that tests do not depend on each other. */
async function applyLink([a, b]: readonly [Buffer, Buffer], receivedAt: number): Promise<string> {
  const people = await openRedisPeople({ url: testStores().redis, linkTopic: `${environmentId()}-links` });
  const source = { generation: 0, partition: 0 };
  const after = await people.graph.lastApplied(source);
  const step = {
    link: 'identify',
    blocked: false,
    otherKeys: [],
    aKey: a,
    aKind: 'anonymous',
    bKey: b,
    bKind: 'steam',
  } as const;
  const fact = { environmentId: environmentId(), offset: after + 1, receivedAt, eventTime: receivedAt, steps: [step] };
  const [applied] = await people.graph.apply({ ...source, after, through: after + 1, facts: [fact] });
  await people.close();
  return applied!.kind;
}

async function linkDirectly(user: Buffer, anonymous: Buffer): Promise<void> {
  expect(await applyLink([anonymous, user], Date.now() - 60_000)).toBe('decided');
}
