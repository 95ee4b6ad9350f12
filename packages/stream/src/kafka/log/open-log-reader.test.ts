import { expect, it } from 'vitest';
import { batchCalls } from './open-log-reader.ts';

it('batchCalls combines the calls in one event loop turn into one request', async () => {
  const requests: (readonly string[])[] = [];
  const lengthOf = batchCalls(async (names) => {
    requests.push(names);
    return new Map(names.filter((name) => name !== 'absent').map((name) => [name, name.length]));
  });
  const results = await Promise.all(['a', 'bb', 'a', 'absent'].map(lengthOf));
  expect(results).toEqual([1, 2, 1, undefined]);
  expect(requests).toEqual([['a', 'bb', 'absent']]);
});

it('batchCalls never returns the result of an earlier request', async () => {
  let version = 0;
  const requested = Promise.withResolvers<void>();
  const response = Promise.withResolvers<void>();
  const versionOf = batchCalls(async (names) => {
    const current = version;
    requested.resolve();
    await response.promise;
    return new Map(names.map((name) => [name, current]));
  });
  const first = versionOf('a');
  await requested.promise;
  version = 1;
  const second = versionOf('a');
  response.resolve();
  expect([await first, await second]).toEqual([0, 1]);
});

it('batchCalls rejects only the call for the name that fails', async () => {
  const lengthOf = batchCalls(async (names) => {
    if (names.includes('bad')) throw new Error('no leader');
    return new Map(names.map((name) => [name, name.length]));
  });
  const [good, bad] = await Promise.allSettled([lengthOf('a'), lengthOf('bad')]);
  expect(good).toEqual({ status: 'fulfilled', value: 1 });
  expect(bad).toMatchObject({ status: 'rejected', reason: { message: 'no leader' } });
});
