import { expect, it } from 'vitest';
import { createLocalLimiter } from './bucket.ts';

const policy = { name: 'consents', perSecond: 1, burst: 2 };

it('keeps a bucket for each id', () => {
  const limiter = createLocalLimiter({ policy, now: () => 0 });
  limiter.bucket('a').charge(2);
  expect(limiter.bucket('a').status()).toEqual({ allowed: false, remaining: 0, waitS: 1 });
  expect(limiter.bucket('b').status().allowed).toBe(true);
});

it('keeps no more buckets than allowed, and never drops the one in use', () => {
  const limiter = createLocalLimiter({ policy, entriesMax: 100, now: () => 0 });
  limiter.bucket('mine').charge(2);
  for (let address = 0; address < 10_000; address++) {
    limiter.bucket(`address-${address}`).charge(1);
    limiter.bucket('mine');
  }
  expect(limiter.size).toBe(100);
  expect(limiter.bucket('mine').status().allowed).toBe(false);
});
