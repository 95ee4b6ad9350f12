import { randomUUID } from 'node:crypto';
import { testStores, until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { COLLECTIONS } from '../collections/collection.ts';
import { PROJECTS } from '../projects/project.ts';
import { type RedisAccessOptions, RedisSharing } from './connection.ts';
import { openRedisRecords } from './records.ts';

const { redis: url } = testStores();
const redis = new Redis(url);
afterAll(() => redis.disconnect());

/** Ids of connections by name. */
async function connectionsOf(name: string): Promise<string[]> {
  const list = String(await redis.client('LIST'));
  const lines = list.split('\n').filter((line) => line.includes(` name=${name} `));
  return lines.map((line) => /id=(\d+)/.exec(line)![1]!);
}

async function openTwo(given: Partial<RedisAccessOptions>) {
  const name = `test-${randomUUID()}`;
  const options = { url: `${url}?connectionName=${name}`, namespace: `${name}:`, ...given };
  const views = [await openRedisRecords(PROJECTS, options), await openRedisRecords(COLLECTIONS, options)] as const;
  onTestFinished(async () => void (await Promise.all(views.map((view) => view.close()))));
  return { name, views };
}

it('views with one RedisSharing use one connection, and others one each', async () => {
  const shared = await openTwo({ sharing: new RedisSharing() });
  const apart = await openTwo({});
  expect(await connectionsOf(shared.name)).toHaveLength(1);
  expect(await connectionsOf(apart.name)).toHaveLength(2);
});

it('a shared connection is open until its last view is closed', async () => {
  const { name, views } = await openTwo({ sharing: new RedisSharing() });
  await views[0].close();
  await views[0].close();
  expect(await views[1].ready()).toBe(true);
  await views[1].close();
  await until('the connection is closed', async () => (await connectionsOf(name)).length === 0);
});

it('a command that Redis refuses does not fail others that are sent with it', async () => {
  const { name, views } = await openTwo({ sharing: new RedisSharing() });
  onTestFinished(async () => void (await redis.del(`${name}:access:projects:places`)));
  await redis.set(`${name}:access:projects:places`, 'no hash');
  const [refused, answered] = await Promise.allSettled([views[0].status(), views[1].status()]);
  expect(refused).toMatchObject({ status: 'rejected', reason: { message: expect.stringContaining('WRONGTYPE') } });
  expect(answered).toMatchObject({ status: 'fulfilled', value: { completeIn: null } });
});

it('views fail immediately while Redis is down, and reconnect', async () => {
  const { name, views } = await openTwo({ sharing: new RedisSharing() });
  const before = await connectionsOf(name);
  await redis.client('KILL', 'ID', before[0]!);
  await until('a new connection', async () => {
    const now = await connectionsOf(name);
    return now.length === 1 && now[0] !== before[0];
  });
  await until('it answers', () => views[0].ready().catch(() => false));
  expect(await views[1].status()).toMatchObject({ completeIn: null });
});
