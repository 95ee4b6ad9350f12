import { randomBytes } from 'node:crypto';
import {
  ACCESS_KEYS,
  createKey,
  createProject,
  PROJECTS,
  type ProjectRecord,
  revokeKey,
  USUAL_ENVIRONMENTS,
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

/** Soon enough that no test waits long, and late enough that an emptied Redis is seen empty. */
const COMPARE_EVERY_MS = 1_000;

async function open(view?: { update(): Promise<never> }) {
  const opened = await openRedisRecords(PROJECTS, { url: redis.url });
  const records = openPortalRecords({ ...log, view: { ...opened, ...view }, compareEveryMs: COMPARE_EVERY_MS });
  onTestFinished(() => records.close());
  return records;
}
const create = async (records: { changedBy: Awaited<ReturnType<typeof open>>['changedBy'] }, name: string) =>
  createProject({ store: records.changedBy(author) }, { name, environments: USUAL_ENVIRONMENTS });
const names = (records: readonly ProjectRecord[]) => records.map(({ name }) => name);

it('shows a change at once to whoever made it, and to every other process within a second', async () => {
  const [ours, theirs] = [await open(), await open()];
  await theirs.all().catch(() => []);
  const made = await create(ours, 'Seen');
  expect(names(await ours.all())).toContain('Seen');
  const sentAt = performance.now();
  await until('the other one sees it', async () => names(await theirs.all()).includes('Seen'));
  expect(performance.now() - sentAt).toBeLessThan(1_000 + 500);
  expect(made).toMatchObject({ ...author, revision: 1 });
});

it('brings in a change whose process died between log and Redis', async () => {
  const dying = await open({ update: () => Promise.reject(new Error('killed')) });
  await expect(create(dying, 'Half')).rejects.toThrow('may not have it');
  const other = await open();
  await until('it is there', async () => names(await other.all()).includes('Half'));
});

it('brings everything back into a Redis that was emptied, and never says meanwhile that there is nothing', async () => {
  const records = await open();
  await create(records, 'Kept');
  await redis.client.flushdb();
  const isComplete = async () => (await redis.client.exists('access:projects:complete')) === 1;
  const told: (string[] | null)[] = [];
  await until('it is back', async () => {
    const wasComplete = await isComplete();
    told.push(await records.all().then(names, () => null));
    return wasComplete;
  });
  expect(told.filter((each) => each !== null && !each.includes('Kept'))).toEqual([]);
  expect(told.at(-1)).toContain('Kept');
});

it('applies a change to Redis although Redis missed the first write of it', async () => {
  const opened = await openRedisRecords(ACCESS_KEYS, { url: redis.url });
  let misses = 0;
  const update: typeof opened.update = async (given) => {
    if (misses-- > 0) throw new Error('Redis was away for a moment');
    return opened.update(given);
  };
  const keys = openPortalRecords({ ...log, view: { ...opened, update } });
  onTestFinished(() => keys.close());
  const owner = { projectId: 'q', environmentId: 'q-development', environment: 'development' } as const;
  const context = { store: keys.changedBy(author), prefix: 'svcapik' };
  await createKey(context, { ...owner, kind: 'secret' });
  misses = 1;
  await revokeKey(context, { environmentId: owner.environmentId, kind: 'secret' });
  expect(await keys.all()).toMatchObject([{ live: null, ended: [{ revokedAt: expect.any(Number) }] }]);
});
