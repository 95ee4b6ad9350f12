import { expect, it } from 'vitest';
import { createReadiness } from './app.ts';

function setUp() {
  const world = { broker: true, schemas: true, keys: true, accepting: true, clock: true };
  const ready = createReadiness({
    producer: { ready: async () => world.broker },
    schemas: { current: () => (world.schemas ? { messages: 1, identityLinks: 2 } : null) },
    keys: { ready: () => (world.keys ? Promise.resolve(true) : Promise.reject(new Error('away'))) },
    accepting: () => world.accepting,
    clock: { fault: () => (world.clock ? null : 'the clock is wrong') },
  });
  const query = async () => {
    const answers = Object.entries(ready).map(async ([name, check]) => {
      const answer = await Promise.resolve(check()).catch(() => false);
      return [name, answer] as const;
    });
    return Object.fromEntries(await Promise.all(answers));
  };
  return { world, query };
}

it('names everything that is missing', async () => {
  const { world, query } = setUp();
  world.keys = false;
  world.broker = false;
  world.clock = false;
  expect(await query()).toEqual({ accepting: true, broker: false, schemas: true, keys: false, clock: false });
});

it('stays on when the keys cannot be read after they were once', async () => {
  const { world, query } = setUp();
  await query();
  world.keys = false;
  expect(await query()).toEqual({ accepting: true, broker: true, schemas: true, keys: true, clock: true });
});

it('goes off with the brokers and with the start of a drain', async () => {
  const { world, query } = setUp();
  world.broker = false;
  expect((await query()).broker).toBe(false);
  world.accepting = false;
  expect((await query()).accepting).toBe(false);
});
