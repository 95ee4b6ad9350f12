import { expect, it } from 'vitest';
import { batchCalls } from './open-log-reader.ts';

it('asks once for all names of the same turn, and each caller gets the answer to its own', async () => {
  const asked: (readonly string[])[] = [];
  const lengthOf = batchCalls(async (names) => {
    asked.push(names);
    return new Map(names.map((name) => [name, name.length]));
  });
  expect(await Promise.all([lengthOf('a'), lengthOf('bb'), lengthOf('a')])).toEqual([1, 2, 1]);
  expect(asked).toEqual([['a', 'bb']]);
});

it('never answers with what was asked before the call', async () => {
  let version = 0;
  const asking = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const versionOf = batchCalls(async (names) => {
    const now = version;
    asking.resolve();
    await answer.promise;
    return new Map(names.map((name) => [name, now]));
  });
  const early = versionOf('a');
  await asking.promise;
  version = 1;
  const late = versionOf('a');
  answer.resolve();
  expect([await early, await late]).toEqual([0, 1]);
});

it('fails only for the name that fails', async () => {
  const lengthOf = batchCalls(async (names) => {
    if (names.includes('bad')) throw new Error('no leader');
    return new Map(names.map((name) => [name, name.length]));
  });
  const [good, bad] = await Promise.allSettled([lengthOf('a'), lengthOf('bad')]);
  expect(good).toEqual({ status: 'fulfilled', value: 1 });
  expect(bad).toMatchObject({ status: 'rejected', reason: { message: 'no leader' } });
});

it('has no answer for a name that is not in the answer', async () => {
  expect(await batchCalls(async () => new Map<string, number>())('a')).toBeUndefined();
});
