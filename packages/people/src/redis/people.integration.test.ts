import { until } from '@playline/testkit';
import { afterAll, expect, it } from 'vitest';
import { openTestPeople } from '../test/test-people.ts';

const testPeople = openTestPeople();
afterAll(testPeople.close);

it('rewriteLog starts a rewrite and succeeds while a rewrite is already running', async () => {
  const { people } = await testPeople.open();
  const read = async (field: string) =>
    Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(await testPeople.redis.info('persistence'))?.[1]);
  const before = await read('aof_rewrites');
  await Promise.all([people.rewriteLog(), people.rewriteLog()]);
  await until('the rewrite has finished', async () => (await read('aof_rewrite_in_progress')) === 0);
  expect(await read('aof_rewrites')).toBeGreaterThan(before);
});
