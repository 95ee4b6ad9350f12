import { describe, expect, it } from 'vitest';
import { createUsageCounter, MINUTE_MS, minuteOf } from './key-usage.ts';

const START = minuteOf(1_790_000_000_000);
const key = { keyId: 'k', environmentId: 'demo' };

describe('the usage counter', () => {
  it('counts requests and refusals per key and messages per environment, and starts from zero after `take`', () => {
    const clock = { now: START };
    const counter = createUsageCounter({ wallClockMs: () => clock.now });
    counter.used(key, 5, 1);
    clock.now += 10;
    counter.refused(key, { reason: 'ALL_MESSAGES_REJECTED', traceId: 't', rejected: 3 });
    counter.used({ keyId: 'k2', environmentId: 'demo' }, 1, 0);
    counter.used({ keyId: 'partner', environmentId: null }, 0, 0);
    const lastRefusal = { at: START + 10, reason: 'ALL_MESSAGES_REJECTED', traceId: 't' };
    expect(counter.take()).toEqual({
      minuteAt: START,
      lost: 0,
      keys: [
        { keyId: 'k', uses: 2, refusals: 1, messages: 9, lastUsedAt: START + 10, lastRefusal },
        { keyId: 'k2', uses: 1, refusals: 0, messages: 1, lastUsedAt: START + 10, lastRefusal: null },
        { keyId: 'partner', uses: 1, refusals: 0, messages: 0, lastUsedAt: START + 10, lastRefusal: null },
      ],
      environments: [{ environmentId: 'demo', accepted: 6, rejected: 4 }],
    });
    expect(counter.take()).toMatchObject({ keys: [], environments: [], lost: 0 });
  });

  it('assigns counts to the correct minute if the timer fires early or late', () => {
    const clock = { now: START };
    const counter = createUsageCounter({ wallClockMs: () => clock.now });
    clock.now = START + 59_998;
    expect(counter.take().minuteAt).toBe(START);
    clock.now = START + MINUTE_MS + 10_004;
    expect(counter.take().minuteAt).toBe(START + MINUTE_MS);
  });

  it('counts a limited number of keys, and reports how many requests were not counted', () => {
    const counter = createUsageCounter({ keysMax: 10 });
    for (let index = 0; index < 1_000; index++) counter.used({ keyId: `k-${index}`, environmentId: 'demo' }, 1, 0);
    counter.used({ keyId: 'k-3', environmentId: 'demo' }, 1, 0);
    const taken = counter.take();
    expect([taken.keys.length, taken.lost]).toEqual([10, 990]);
    expect(taken.environments).toEqual([{ environmentId: 'demo', accepted: 11, rejected: 0 }]);
    counter.used({ keyId: 'k-999', environmentId: 'demo' }, 1, 0);
    expect(counter.take().keys.map(({ keyId }) => keyId)).toEqual(['k-999']);
  });
});
