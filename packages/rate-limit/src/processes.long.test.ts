import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { testStores } from '@playline/testkit';
import { Redis } from 'ioredis';
import { afterAll, expect, it } from 'vitest';
import { unsettledMax } from './index.ts';
import type { Greed, Outcome } from './test/greedy-process.ts';

const PROCESS = fileURLToPath(new URL('test/greedy-process.ts', import.meta.url));
const url = testStores().redis;
const namespace = `test-${randomBytes(4).toString('hex')}:`;

afterAll(async () => {
  const redis = new Redis(url);
  const keys = await redis.keys(`${namespace}*`);
  if (keys.length > 0) await redis.del(keys);
  redis.disconnect();
});

// Measures moments of three busy processes, so it needs cores of its own.

it('processes on one Redis allow in every window no more than burst, rate and the stated bound, and not much less either', async () => {
  const policy = { name: 'messages', perSecond: 2000, burst: 4000 };
  const [processes, cost, seconds] = [3, 20, 2];
  const greed: Greed = { url, namespace, policy, cost, forMs: 1000 * seconds };
  const children = Array.from({ length: processes }, () => fork(PROCESS, [JSON.stringify(greed)]));
  const receive = async (child: ChildProcess) => (await once(child, 'message'))[0];
  await Promise.all(children.map(receive));
  const results = children.map(receive);
  for (const child of children) child.send('start');
  const outcomes = (await Promise.all(results)) as Outcome[];
  expect(outcomes.flatMap(({ changes }) => changes)).toEqual([]);
  const charges = outcomes.flatMap((outcome) => outcome.charges).sort(([one], [other]) => one - other);
  const bound = policy.burst + processes * (unsettledMax(policy) + cost);
  for (const [from, [first]] of charges.entries()) {
    let sum = 0;
    for (const [at, units] of charges.slice(from)) {
      sum += units;
      // One millisecond more, because the moments are rounded to whole milliseconds.
      expect(sum).toBeLessThanOrEqual(bound + ((at - first + 1) * policy.perSecond) / 1000);
    }
  }
  const all = charges.reduce((sum, [, units]) => sum + units, 0);
  expect(all).toBeGreaterThan(policy.burst);
});
