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

/** Returns the ids of the Redis connections that have the given name. */
async function connectionsOf(name: string): Promise<string[]> {
  const list = String(await redis.client('LIST'));
  const lines = list.split('\n').filter((line) => line.includes(` name=${name} `));
  return lines.map((line) => /id=(\d+)/.exec(line)![1]!);
}

async function openTwo(changes: Partial<RedisAccessOptions>) {
  const name = `test-${randomUUID()}`;
  const options = { url: `${url}?connectionName=${name}`, namespace: `${name}:`, ...changes };
  const views = [await openRedisRecords(PROJECTS, options), await openRedisRecords(COLLECTIONS, options)] as const;
  onTestFinished(async () => void (await Promise.all(views.map((view) => view.close()))));
  return { name, views };
}

it('views that share a RedisSharing use one connection, and other views use one connection each', async () => {
  const shared = await openTwo({ sharing: new RedisSharing() });
  const separate = await openTwo({});
  expect(await connectionsOf(shared.name)).toHaveLength(1);
  expect(await connectionsOf(separate.name)).toHaveLength(2);
});

it('a shared connection stays open until the last view is closed', async () => {
  const { name, views } = await openTwo({ sharing: new RedisSharing() });
  await views[0].close();
  await views[0].close();
  expect(await views[1].ready()).toBe(true);
  await views[1].close();
  await until('the connection is closed', async () => (await connectionsOf(name)).length === 0);
});

it('a command that Redis rejects does not affect other commands in the same pipeline', async () => {
  const { name, views } = await openTwo({ sharing: new RedisSharing() });
  onTestFinished(async () => void (await redis.del(`${name}:access:projects:places`)));
  await redis.set(`${name}:access:projects:places`, 'not a hash');
  const [rejected, fulfilled] = await Promise.allSettled([views[0].status(), views[1].status()]);
  expect(rejected).toMatchObject({ status: 'rejected', reason: { message: expect.stringContaining('WRONGTYPE') } });
  expect(fulfilled).toMatchObject({ status: 'fulfilled', value: { completeIn: null } });
});

it('views reconnect after Redis closes their connection', async () => {
  const { name, views } = await openTwo({ sharing: new RedisSharing() });
  const before = await connectionsOf(name);
  await redis.client('KILL', 'ID', before[0]!);
  await until('the views have a new connection', async () => {
    const now = await connectionsOf(name);
    return now.length === 1 && now[0] !== before[0];
  });
  await until('the view is ready', () => views[0].ready().catch(() => false));
  expect(await views[1].status()).toMatchObject({ completeIn: null });
});
