import type { KeyRecord } from '@playline/access-keys';
import type { Exchange } from '@playline/http';
import { createLocalLimiter } from '@playline/rate-limit';
import { expect, it } from 'vitest';
import { createFailedKeyLimit } from '../authorise.ts';

const exchangeOf = (address: string) => ({ request: { address } }) as unknown as Exchange;

/** Keys and the results of their look-ups; all other keys are unknown. */
function setUp() {
  const keys = new Map<string, KeyRecord>([['good', { keyId: 'k' } as KeyRecord]]);
  const world = { keys, lookUps: 0, away: false };
  const limit = createFailedKeyLimit({
    limiter: createLocalLimiter({ policy: { name: 'failed-keys', perSecond: 1, burst: 3 }, now: () => 0 }),
    addressOf: (request) => (request as unknown as { address: string }).address,
    onRefused: () => {},
  });
  const verify = limit.guard(async (key) => {
    world.lookUps++;
    if (world.away) throw new Error('away');
    return keys.get(key) ?? null;
  });
  const ask = async (key: string, address = '192.0.2.1') => verify(key, exchangeOf(address));
  return { world, ask };
}

it('the limit on failed keys is the same for parallel tries as for tries one by one', async () => {
  const { ask } = setUp();
  const outcomes = await Promise.allSettled(Array.from({ length: 100 }, (_, place) => ask(`wrong-${place}`)));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
});

it('the limit on failed keys charges nothing for a valid key, however often it is used', async () => {
  const { ask } = setUp();
  for (let times = 0; times < 10; times++) expect(await ask('good')).not.toBeNull();
  for (let times = 0; times < 3; times++) expect(await ask('wrong')).toBeNull();
  await expect(ask('wrong')).rejects.toThrow('Too many requests');
});

it('the limit on failed keys lets a valid key through from a refused address, known or new, and asks it to wait once it has ended', async () => {
  const { world, ask } = setUp();
  await ask('good');
  for (let times = 0; times < 3; times++) await ask('wrong');
  world.keys.set('successor', { keyId: 's' } as KeyRecord);
  expect(await ask('successor')).not.toBeNull();
  expect(await ask('good')).not.toBeNull();
  world.keys.delete('good');
  await expect(ask('good')).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS_ERROR', retryAfterS: 1 });
});

it('the limit on failed keys charges nobody while the store is away', async () => {
  const { world, ask } = setUp();
  world.away = true;
  for (let times = 0; times < 10; times++) await expect(ask('any')).rejects.toThrow('away');
});

it('the limit on failed keys counts each address separately', async () => {
  const { ask } = setUp();
  for (let times = 0; times < 3; times++) await ask('wrong');
  expect(await ask('wrong', '192.0.2.2')).toBeNull();
});
