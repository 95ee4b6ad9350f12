import { freePorts } from '@playline/infra/ports';
import { testStores, until } from '@playline/testkit';
import type { RedisOptions } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { openRedis } from './redis.ts';

it('a command fails immediately while Redis is unavailable, and the client continues to reconnect', async () => {
  const faults: Error[] = [];
  const [port] = await freePorts(1);
  const url = `redis://127.0.0.1:${port}`;
  const { redis, opened, ready, close } = openRedis(
    { url, onFault: (fault) => faults.push(fault) },
    { reconnectMaxMs: 60 },
  );
  onTestFinished(close);
  await opened;
  await expect(redis.get('key')).rejects.toThrow();
  expect(await ready()).toBe(false);
  await until('several attempts have failed', async () => faults.length > 2);
});

it('the reconnect delay grows while Redis rejects the login', async () => {
  const faults: Error[] = [];
  const url = new URL(testStores().redis);
  url.password = 'wrong';
  const { redis, close } = openRedis({ url: url.href, onFault: (fault) => faults.push(fault) });
  onTestFinished(close);
  await until('the login is rejected', async () => faults.some(({ message }) => message.startsWith('WRONGPASS')));
  expect((redis.options as RedisOptions).retryStrategy?.(100)).toBe(5_000);
  expect(faults.map(String).join()).not.toContain('wrong');
});
