import { until } from '@playline/testkit';
import { afterAll, expect, it } from 'vitest';
import { openTestPeople } from '../test/test-people.ts';

const inRedis = openTestPeople();
afterAll(inRedis.close);

it('rewriteLog starts a rewrite, and does not fail while a rewrite is running', async () => {
  const { people } = await inRedis.open();
  const read = async (field: string) =>
    Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(await inRedis.redis.info('persistence'))?.[1]);
  const before = await read('aof_rewrites');
  await Promise.all([people.rewriteLog(), people.rewriteLog()]);
  await until('the rewrite is done', async () => (await read('aof_rewrite_in_progress')) === 0);
  expect(await read('aof_rewrites')).toBeGreaterThan(before);
});
