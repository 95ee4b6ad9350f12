import type { IdentityDecisionRecord } from '@playline/contracts';
import { openMemoryErasureRecords } from '@playline/erasure/memory';
import { cellOf } from '@playline/people';
import { createLogger } from '@playline/runtime';
import {
  type ClusterNode,
  openRedisCluster,
  openServiceProcesses,
  testStores,
  until,
  useRedisCluster,
} from '@playline/testkit';
import { afterAll, afterEach, expect, it, onTestFinished } from 'vitest';
import { openFenceKeeper } from '../../services/eraser/src/pipeline.ts';
import { stepOf, toFact, toText } from '../../services/identity-linker/src/test/linking.ts';
import { openRealStores } from '../../services/identity-linker/src/test/open-real-stores.ts';

/** Two cells for each of the two partitions of a test topic. */
const CELLS = 4;
const WAIT_MS = 60_000;
const toTag = (cell: number) => `{c${cell}/${CELLS}}`;
const FACT_INTERVAL_MS = 20;
const LINKER = new URL('../../services/identity-linker/src/main.ts', import.meta.url).pathname;

const cluster = await openRedisCluster();
useRedisCluster(cluster, CELLS);
const stores = await openRealStores();
const { kafka, registry } = testStores();
const linkers = openServiceProcesses(LINKER, {
  LOG_LEVEL: 'error',
  KAFKA_BROKERS: kafka.join(),
  SCHEMA_REGISTRY_URL: registry,
  REDIS_URL: cluster.url,
  REDIS_CLUSTER: 'true',
  IDENTITY_CELLS: String(CELLS),
  IDENTITY_PEPPER: '05'.repeat(32),
  TOPIC_PREFIX: stores.topicPrefix,
  CONSUMER_GROUP: stores.group,
});
const keeper = openFenceKeeper({
  people: stores.people,
  records: openMemoryErasureRecords(Date.now),
  logger: createLogger({ service: 'test', level: 'silent' }),
  onRestored: () => {},
});
let published = 0;

afterEach(() => linkers.close());
afterAll(async () => {
  await keeper.close();
  await stores.close();
  await cluster.close();
});

/** An environment in each cell. */
function createEnvironmentIds(): string[] {
  const ids = new Map<number, string>();
  while (ids.size < CELLS) {
    const id = stores.createEnvironmentId();
    ids.set(cellOf(id, CELLS), id);
  }
  return [...ids].sort(([a], [b]) => a - b).map(([, id]) => id);
}

/** Publishes a fact for each environment at a constant rate until it is stopped. */
function startLoad(environmentIds: readonly string[]) {
  let count = 0;
  let isStopped = false;
  const load = async () => {
    while (!isStopped) {
      const ids = { fromId: `a${count}`, toKind: 'steam' as const, toId: `u${count % 7}` };
      await stores.publish(environmentIds.map((environmentId) => toFact({ environmentId, ...ids })));
      count++;
      published += environmentIds.length;
      await new Promise((done) => setTimeout(done, FACT_INTERVAL_MS));
    }
  };
  const running = load();
  const halt = async () => {
    isStopped = true;
    await running;
  };
  return {
    get count() {
      return count;
    },
    halt,
    async stop() {
      await halt();
      await until('every fact is committed', async () => (await stores.countCommitted()) === published, WAIT_MS);
      return count;
    },
  };
}

/** Asserts that each step has one decision, and that the graph contains exactly what was decided. */
async function expectComplete(environmentId: string, facts: number, decisions: readonly IdentityDecisionRecord[]) {
  const own = decisions.filter((decision) => decision.environmentId === environmentId);
  const byStep = new Map(own.map((decision) => [stepOf(decision), decision]));
  expect(byStep.size).toBe(2 * facts);
  expect(new Set(own.map(toText)).size).toBe(byStep.size);
  const roots = new Map<string, string>();
  const orderOf = ({ offset, step }: IdentityDecisionRecord) => offset * 256 + step;
  for (const { root, moved } of [...byStep.values()].sort((a, b) => orderOf(a) - orderOf(b)))
    for (const { key } of moved) roots.set(key.toString('hex'), root.toString('hex'));
  const keys = [...roots.keys()].map((hex) => Buffer.from(hex, 'hex'));
  const stored = await stores.people.graph.rootsOf(environmentId, keys);
  expect(stored.map((root) => root?.toString('hex'))).toEqual([...roots.values()]);
}

async function runFault(fault: (primary: ClusterNode, replica: ClusterNode, count: () => number) => Promise<void>) {
  const environmentIds = createEnvironmentIds();
  await linkers.start();
  const load = startLoad(environmentIds);
  onTestFinished(load.halt);
  await until('facts are decided', async () => load.count > 20 && (await stores.countCommitted()) > 0, WAIT_MS);
  const [primary, replica] = [await cluster.primaryOf(toTag(0)), await cluster.replicaOf(toTag(0))];
  onTestFinished(() => primary.start());
  await fault(primary, replica, () => load.count);
  const before = load.count;
  await until('the load continues', async () => load.count > before + 60, WAIT_MS);
  const facts = await load.stop();
  const decisions = await stores.readDecisions();
  for (const environmentId of environmentIds) await expectComplete(environmentId, facts, decisions);
}

it('no link is lost or contradicted when a primary is killed whose replica is in sync', async () => {
  await runFault((primary) => primary.kill());
});

it('links that a promoted replica lacked are applied again from the log, with the same decisions', async () => {
  await runFault(async (primary, replica, count) => {
    replica.suspend();
    // Disconnected, because it would read what its socket has received.
    await primary.client.call('CLIENT', 'KILL', 'TYPE', 'replica');
    const start = count();
    await until('more facts are published', async () => count() > start + 20, WAIT_MS);
    await primary.kill();
    replica.resume();
  });
});

it('no link is lost or contradicted while the slots of all cells move to other primaries', async () => {
  await runFault(async () => {
    for (let cell = 0; cell < CELLS; cell++) await (await cluster.startMove(toTag(cell))).finish();
  });
});
