import fc from 'fast-check';
import { expect, it } from 'vitest';
import { limitField, policyField, type RatePolicy } from './admit.ts';
import { Bucket, createLocalLimiter } from './bucket.ts';

/** A reference token bucket with exact integer arithmetic in thousandths of a unit. */
class Model {
  readonly policy: RatePolicy;
  thousandths: number;
  constructor(policy: RatePolicy) {
    this.policy = policy;
    this.thousandths = policy.burst * 1000;
  }
  advance(ms: number) {
    this.thousandths = Math.min(this.policy.burst * 1000, this.thousandths + ms * this.policy.perSecond);
  }
  get units() {
    return Math.max(0, Math.floor(this.thousandths / 1000));
  }
  /** Whole seconds until `thousandths` are available. */
  secondsUntil(thousandths: number) {
    return Math.ceil((thousandths - this.thousandths) / (this.policy.perSecond * 1000));
  }
}

const policies = fc.record({
  name: fc.constant('messages'),
  perSecond: fc.integer({ min: 1, max: 20_000 }),
  burst: fc.integer({ min: 1, max: 50_000 }),
});
const steps = fc.array(
  fc.record({ waitMs: fc.nat(3000), units: fc.oneof(fc.nat(100), fc.nat(20_000)), isCompliant: fc.boolean() }),
  { maxLength: 100 },
);

it('a bucket always has the same balance as the reference token bucket, including negative balances', () => {
  fc.assert(
    fc.property(policies, steps, (policy, run) => {
      let now = 1000;
      const bucket = new Bucket(policy, () => now);
      const model = new Model(policy);
      for (const { waitMs, units, isCompliant } of run) {
        now += waitMs;
        model.advance(waitMs);
        const status = bucket.status();
        expect(status.remaining).toBe(model.units);
        expect(status.allowed).toBe(model.units >= 1);
        if (status.allowed) expect(status.waitS).toBe(model.secondsUntil(policy.burst * 1000));
        else expect(status.waitS).toBe(Math.max(1, model.secondsUntil(1000)));
        if (isCompliant && !status.allowed) continue;
        bucket.charge(units);
        model.thousandths -= units * 1000;
      }
    }),
  );
});

it('a bucket accepts refunded units, but never exceeds its burst', () => {
  const bucket = new Bucket({ name: 'a', perSecond: 1, burst: 5 }, () => 1000);
  bucket.charge(3);
  bucket.charge(-1);
  expect(bucket.status().remaining).toBe(3);
  bucket.charge(-10);
  expect(bucket.status().remaining).toBe(5);
});

it('a bucket rejects a charge that is not a finite number, and stays unchanged', () => {
  const bucket = new Bucket({ name: 'a', perSecond: 1, burst: 5 }, () => 1000);
  for (const units of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
    expect(() => bucket.charge(units)).toThrow(RangeError);
  expect(bucket.status()).toEqual({ allowed: true, remaining: 5, waitS: 0 });
});

const policy = { name: 'messages', perSecond: 5000, burst: 10_000 };

it("the header fields contain the policy's quota and its window in whole seconds", () => {
  expect(policyField(policy)).toBe('"messages";q=10000;w=2');
  expect(policyField({ ...policy, perSecond: 3000 })).toBe('"messages";q=10000;w=4');
});

it('the header fields contain the remaining units and the time until the bucket is full', () => {
  const bucket = new Bucket(policy, () => 0);
  expect(limitField(policy, bucket.status())).toBe('"messages";r=10000;t=0');
  bucket.charge(6000);
  expect(limitField(policy, bucket.status())).toBe('"messages";r=4000;t=2');
});

it('after a refusal, the header fields contain 0 units and the time until one unit is available', () => {
  const bucket = new Bucket(policy, () => 0);
  bucket.charge(25_000);
  expect(limitField(policy, bucket.status())).toBe('"messages";r=0;t=4');
  expect(bucket.status().waitS).toBe(4);
});

it('the header fields are structured field strings with integer parameters', () => {
  fc.assert(
    fc.property(policies, fc.nat(100_000), (randomPolicy, units) => {
      const bucket = new Bucket(randomPolicy, () => 0);
      bucket.charge(units);
      expect(policyField(randomPolicy)).toMatch(/^"[a-z-]+";q=[0-9]{1,15};w=[1-9][0-9]{0,14}$/);
      expect(limitField(randomPolicy, bucket.status())).toMatch(/^"[a-z-]+";r=[0-9]{1,15};t=[0-9]{1,15}$/);
    }),
  );
});

const consents = { name: 'consents', perSecond: 1, burst: 2 };

it('the local limiter has a separate bucket for each id', () => {
  const limiter = createLocalLimiter({ policy: consents, now: () => 0 });
  limiter.bucket('a').charge(2);
  expect(limiter.bucket('a').status()).toEqual({ allowed: false, remaining: 0, waitS: 1 });
  expect(limiter.bucket('b').status().allowed).toBe(true);
});

it('the local limiter never exceeds its maximum number of buckets, and never drops a bucket in use', () => {
  const limiter = createLocalLimiter({ policy: consents, entriesMax: 100, now: () => 0 });
  limiter.bucket('busy').charge(2);
  for (let address = 0; address < 10_000; address++) {
    limiter.bucket(`address-${address}`).charge(1);
    limiter.bucket('busy');
  }
  expect(limiter.size).toBe(100);
  expect(limiter.bucket('busy').status().allowed).toBe(false);
});
