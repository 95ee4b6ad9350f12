import { expect, it } from 'vitest';
import { createReadiness } from './app.ts';

function setUp() {
  const state = { broker: true, schemas: true, keys: true, accepting: true, clock: true };
  const ready = createReadiness({
    producer: { ready: async () => state.broker },
    schemas: { current: () => (state.schemas ? { messages: 1, identityLinks: 2 } : null) },
    keys: { ready: () => (state.keys ? Promise.resolve(true) : Promise.reject(new Error('unavailable'))) },
    accepting: () => state.accepting,
    clock: { fault: () => (state.clock ? null : 'the clock is wrong') },
  });
  const query = async () => {
    const results = Object.entries(ready).map(async ([name, check]) => {
      const result = await Promise.resolve(check()).catch(() => false);
      return [name, result] as const;
    });
    return Object.fromEntries(await Promise.all(results));
  };
  return { state, query };
}

it('readiness reports every failing check', async () => {
  const { state, query } = setUp();
  state.keys = false;
  state.broker = false;
  state.clock = false;
  expect(await query()).toEqual({ accepting: true, broker: false, schemas: true, keys: false, clock: false });
});

it('after the first successful read of the keys, the gateway stays ready if they cannot be read', async () => {
  const { state, query } = setUp();
  await query();
  state.keys = false;
  expect(await query()).toEqual({ accepting: true, broker: true, schemas: true, keys: true, clock: true });
});

it('the gateway is not ready without brokers or during a drain', async () => {
  const { state, query } = setUp();
  state.broker = false;
  expect((await query()).broker).toBe(false);
  state.accepting = false;
  expect((await query()).accepting).toBe(false);
});
