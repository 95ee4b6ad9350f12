import { randomBytes } from 'node:crypto';
import {
  ACCESS_KEYS,
  createKey,
  createProject,
  DEFAULT_ENVIRONMENTS,
  PROJECTS,
  type ProjectRecord,
  revokeKey,
} from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { createLogger } from '@playline/runtime';
import { createSchemaRegistry, openLogReader, openProducer } from '@playline/stream/kafka';
import { openRedisDatabase, type RedisDatabase, testStores, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type LogParts, openPortalRecords } from './portal-records.ts';

const topicPrefix = `test-${randomBytes(4).toString('hex')}.`;
const { kafka: brokers, registry } = testStores();
const author = { changedBy: 'ada', requestId: 'r-1' };
const logger = createLogger({ service: 'portal', level: 'silent' });
let redis: RedisDatabase;
let log: LogParts & { producer: Awaited<ReturnType<typeof openProducer>> };

beforeAll(async () => {
  redis = await openRedisDatabase();
  await applyTopics({ brokers, registry, prefix: topicPrefix, partitions: 2 });
  const producer = await openProducer({ brokers, clientId: 'test' });
  const reader = openLogReader({ brokers, clientId: 'test' });
  log = { producer, reader, registry: createSchemaRegistry({ url: registry }), topicPrefix, logger };
  return async () => {
    await producer.close();
    await reader.close();
  };
});
afterAll(async () => {
  await dropTopics({ brokers, registry, prefix: topicPrefix });
  await redis.close();
});

/** Short, but long enough for tests to read while Redis is empty. */
const COMPARE_EVERY_MS = 1_000;

async function open(view?: { update(): Promise<never> }) {
  const opened = await openRedisRecords(PROJECTS, { url: redis.url });
  const records = openPortalRecords({ ...log, view: { ...opened, ...view }, compareEveryMs: COMPARE_EVERY_MS });
  onTestFinished(() => records.close());
  return records;
}
const create = async (records: { storeFor: Awaited<ReturnType<typeof open>>['storeFor'] }, name: string) =>
  createProject({ store: records.storeFor(author) }, { name, environments: DEFAULT_ENVIRONMENTS });
const names = (records: readonly ProjectRecord[]) => records.map(({ name }) => name);

it('a change is visible immediately in its own process, and within a second in all other processes', async () => {
  const [local, other] = [await open(), await open()];
  await other.all().catch(() => []);
  const created = await create(local, 'Visible');
  expect(names(await local.all())).toContain('Visible');
  const sentAt = performance.now();
  await until('the change is visible in the other process', async () => names(await other.all()).includes('Visible'));
  expect(performance.now() - sentAt).toBeLessThan(1_000 + 500);
  expect(created).toMatchObject({ ...author, revision: 1 });
});

it('a change becomes visible even if the process is killed after writing to Kafka', async () => {
  const killed = await open({ update: () => Promise.reject(new Error('killed')) });
  await expect(create(killed, 'Half-written')).rejects.toThrow();
  const other = await open();
  await until('the change is visible', async () => names(await other.all()).includes('Half-written'));
});

it('records are restored after Redis was emptied, and reads never return an empty list in the meantime', async () => {
  const records = await open();
  await create(records, 'Retained');
  await redis.client.flushdb();
  const isComplete = async () => (await redis.client.exists('access:projects:complete')) === 1;
  const lists: (string[] | null)[] = [];
  await until('the records are complete', async () => {
    const wasComplete = await isComplete();
    lists.push(await records.all().then(names, () => null));
    return wasComplete;
  });
  expect(lists.filter((each) => each !== null && !each.includes('Retained'))).toEqual([]);
  expect(lists.at(-1)).toContain('Retained');
});

it('a change reaches Redis even if the first write fails', async () => {
  const opened = await openRedisRecords(ACCESS_KEYS, { url: redis.url });
  let failures = 0;
  const update: typeof opened.update = async (records) => {
    if (failures-- > 0) throw new Error('connection lost');
    return opened.update(records);
  };
  const keys = openPortalRecords({ ...log, view: { ...opened, update } });
  onTestFinished(() => keys.close());
  const owner = { projectId: 'q', environmentId: 'q-development', environment: 'development' } as const;
  const context = { store: keys.storeFor(author), prefix: 'svcapik' };
  await createKey(context, { ...owner, kind: 'secret' });
  failures = 1;
  await revokeKey(context, { environmentId: owner.environmentId, kind: 'secret' });
  expect(await keys.all()).toMatchObject([{ live: null, ended: [{ revokedAt: expect.any(Number) }] }]);
});
