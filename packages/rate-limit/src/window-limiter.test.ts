import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CallWindow, createWindowLimiter } from './window-limiter.ts';

const policy = { name: 'calls', calls: 3, windowS: 10 };

function openWindow() {
  const clock = { ms: 0 };
  return { clock, window: new CallWindow(policy, () => clock.ms) };
}

it('a call window allows calls up to its limit, and then reports when the next call is allowed', () => {
  const { clock, window } = openWindow();
  for (const remaining of [3, 2, 1]) {
    expect(window.status()).toMatchObject({ allowed: true, remaining });
    window.charge(1);
    clock.ms += 1000;
  }
  expect(window.status()).toEqual({ allowed: false, remaining: 0, waitS: 7 });
  clock.ms = 9999;
  expect(window.status()).toEqual({ allowed: false, remaining: 0, waitS: 1 });
  clock.ms = 10_000;
  expect(window.status()).toEqual({ allowed: true, remaining: 1, waitS: 2 });
});

it('a call window with remaining calls reports when all calls are available again', () => {
  const { clock, window } = openWindow();
  expect(window.status()).toEqual({ allowed: true, remaining: 3, waitS: 0 });
  window.charge(1);
  clock.ms = 4000;
  window.charge(1);
  expect(window.status()).toEqual({ allowed: true, remaining: 1, waitS: 10 });
});

it('a call window allows a call if and only if the policy allows the call', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 6000 }), { maxLength: 200 }), (pauses) => {
      const { clock, window } = openWindow();
      const allowedAt: number[] = [];
      for (const pause of pauses) {
        clock.ms += pause;
        const inWindow = allowedAt.filter((at) => at > clock.ms - policy.windowS * 1000).length;
        const { allowed, remaining } = window.status();
        expect([allowed, remaining]).toEqual([inWindow < policy.calls, policy.calls - inWindow]);
        if (!allowed) continue;
        window.charge(1);
        allowedAt.push(clock.ms);
      }
    }),
  );
});

it('a call window allows a refused caller after exactly the reported wait', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 3, maxLength: 50 }), (pauses) => {
      const { clock, window } = openWindow();
      for (const pause of pauses) {
        clock.ms += pause;
        const { allowed, waitS } = window.status();
        if (allowed) {
          window.charge(1);
          continue;
        }
        clock.ms += (waitS - 1) * 1000;
        expect(window.status().allowed).toBe(false);
        clock.ms += 1000;
        expect(window.status().allowed).toBe(true);
      }
    }),
  );
});

it('a window limiter counts calls separately for each caller', () => {
  const limiter = createWindowLimiter({ now: () => 0 });
  limiter.window('a', policy).charge(3);
  expect(limiter.window('a', policy).status().allowed).toBe(false);
  expect(limiter.window('b', policy).status().allowed).toBe(true);
});

it("a window limiter drops a caller exactly when the caller's window is empty", () => {
  let ms = 0;
  const limiter = createWindowLimiter({ now: () => ms });
  limiter.window('a', policy).charge(3);
  ms = 5000;
  limiter.window('b', policy).charge(1);
  ms = 9999;
  limiter.window('c', policy).charge(1);
  expect(limiter.size).toBe(3);
  ms = 15_000;
  limiter.window('c', policy);
  expect(limiter.size).toBe(1);
});

it('a window limiter never exceeds its maximum number of callers, and never drops an active caller', () => {
  const limiter = createWindowLimiter({ entriesMax: 100, now: () => 0 });
  limiter.window('active', policy).charge(3);
  for (let address = 0; address < 10_000; address++) {
    limiter.window(`address-${address}`, policy).charge(1);
    limiter.window('active', policy);
  }
  expect(limiter.size).toBe(100);
  expect(limiter.window('active', policy).status().allowed).toBe(false);
});
