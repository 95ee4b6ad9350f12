import type { IdentityLinkRecord } from '@playline/contracts';
import { createIdentityKeyer } from '@playline/people';
import {
  openServiceProcesses,
  openStoreProxy,
  type ServiceProcess,
  type StoreProxy,
  testStores,
  until,
} from '@playline/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { stepOf, toFact, toText } from './test/linking.ts';
import { openRealStores, type RealStores } from './test/open-real-stores.ts';

const MAIN = new URL('main.ts', import.meta.url).pathname;
// Kafka reassigns a killed linker's partitions only after its session times out.
const WAIT_MS = 40_000;

let stores: RealStores;
let wire: StoreProxy;
let environmentId: string;
let linkers: ReturnType<typeof openServiceProcesses>;
let published = 0;

beforeAll(async () => {
  stores = await openRealStores();
  const { kafka, registry, redis } = testStores();
  linkers = openServiceProcesses(MAIN, {
    LOG_LEVEL: 'error',
    KAFKA_BROKERS: kafka.join(),
    SCHEMA_REGISTRY_URL: registry,
    REDIS_URL: redis,
    IDENTITY_PEPPER: '05'.repeat(32),
    TOPIC_PREFIX: stores.topicPrefix,
    CONSUMER_GROUP: stores.group,
    // A killed linker's partitions stay assigned until this timeout. Long enough for heartbeats on a busy machine.
    SESSION_TIMEOUT_MS: '3000',
  });
  wire = await openStoreProxy(Number(new URL(testStores().redis).port));
});
afterAll(async () => {
  await wire.close();
  await stores.close();
});
beforeEach(() => {
  environmentId = stores.createEnvironmentId();
  wire.mode = 'open';
});
afterEach(() => linkers.close());

function openWithProxy(): Promise<ServiceProcess> {
  const url = new URL(testStores().redis);
  url.port = String(wire.port);
  return linkers.start({ REDIS_URL: url.href });
}

async function publish(facts: Partial<IdentityLinkRecord>[]): Promise<void> {
  await stores.publish(facts.map((fact) => toFact({ environmentId, ...fact })));
  published += facts.length;
}

const committed = () =>
  until('every fact is committed', async () => (await stores.countCommitted()) === published, WAIT_MS);
const decisions = async () =>
  (await stores.readDecisions()).filter((decision) => decision.environmentId === environmentId);
const createFacts = (count: number): Partial<IdentityLinkRecord>[] =>
  Array.from({ length: count }, (_, at) => ({ fromId: `a${at}`, toKind: 'steam' as const, toId: `u${at % 7}` }));

/** Asserts that all steps of `count` typed identify facts are decided in order, each with one distinct decision. */
async function expectComplete(count: number): Promise<void> {
  const found = await decisions();
  const texts = new Set(found.map(toText));
  const steps = [...new Set(found.map(stepOf))];
  expect(steps).toHaveLength(2 * count);
  expect(texts.size).toBe(steps.length);
  const versions = [
    ...new Map(found.map((decision) => [stepOf(decision), decision.offset * 256 + decision.step])).values(),
  ];
  expect(versions).toEqual([...versions].sort((a, b) => a - b));
}

it('the linker decides and publishes every fact in order, commits, and exits with 0 on SIGTERM', async () => {
  const linker = await linkers.start();
  await publish(createFacts(30));
  await committed();
  expect(await linker.stop('SIGTERM')).toBe(0);
  await expectComplete(30);
  const keyOf = createIdentityKeyer(Buffer.alloc(32, 5));
  const members = await stores.people.graph.membersOf(environmentId, keyOf(environmentId, 'steam', 'u0'));
  // Five devices, the typed id and the untyped id.
  expect(members).toHaveLength(7);
  expect((await decisions()).at(-1)!.root).toEqual(
    await stores.people.graph.rootOf(environmentId, keyOf(environmentId, 'anonymous', 'a29')),
  );
});

it('no decision is lost or contradicted when a linker is killed', async () => {
  for (const [round, at] of [3, 40].entries()) {
    const linker = await linkers.start();
    const load = createFacts(60 * (round + 1)).slice(60 * round);
    const decided = (await decisions()).length;
    await publish(load);
    await until('some facts are decided', async () => (await decisions()).length >= decided + at, WAIT_MS);
    await linker.stop('SIGKILL');
  }
  await linkers.start();
  await committed();
  await expectComplete(120);
});

it('facts wait while Redis is unavailable, and /readyz lists the graph', async () => {
  const linker = await openWithProxy();
  wire.mode = 'cut';
  await publish(createFacts(5));
  const notReady = async () => (await (await fetch(`${linker.admin}/readyz`)).json()) as { notReady: string[] };
  await until('/readyz lists the graph', async () => (await notReady()).notReady.includes('graph'));
  expect(await decisions()).toEqual([]);
  wire.mode = 'open';
  await committed();
  await expectComplete(5);
});

it('no fact is lost when a linker is killed while facts wait for an erasure', async () => {
  // This test must be last, because facts in rounds count as committed.
  const keyOf = createIdentityKeyer(Buffer.alloc(32, 5));
  const key = keyOf(environmentId, 'steam', 'u0');
  const hold = { environmentId, erasureId: key };
  await stores.people.guards.putHold({ ...hold, keys: [key], cutoffMs: 999, lapsesAtMs: null });
  const linker = await linkers.start();
  const load = createFacts(21);
  const isHeld = ({ toId }: Partial<IdentityLinkRecord>) => toId === 'u0';
  await publish(load);
  const decided = async () => new Set((await decisions()).map(stepOf)).size;
  await until(
    'all facts without a hold are decided',
    async () => (await decided()) === 2 * load.filter((fact) => !isHeld(fact)).length,
    WAIT_MS,
  );
  await linker.stop('SIGKILL');
  await linkers.start();
  await stores.people.guards.releaseHold(hold);
  await until('all facts are decided', async () => (await decided()) >= 2 * load.length, WAIT_MS);
  const members = await stores.people.graph.membersOf(environmentId, key);
  // The devices, the typed id and the untyped id.
  expect(members).toHaveLength(load.filter(isHeld).length + 2);
  await until('all facts are committed', async () => (await stores.countCommitted()) >= published, WAIT_MS);
});
