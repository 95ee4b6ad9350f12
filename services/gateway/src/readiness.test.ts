import { expect, it } from 'vitest';
import { createReadiness } from './readiness.ts';

function setUp() {
  const world = { broker: true, schemas: true, keys: true, accepting: true };
  const ready = createReadiness({
    producer: { ready: async () => world.broker },
    schemas: { current: () => (world.schemas ? { messages: 1, identityLinks: 2 } : null) },
    store: { ready: () => (world.keys ? Promise.resolve(true) : Promise.reject(new Error('away'))) },
    accepting: () => world.accepting,
  });
  return { world, ready };
}

it('names each thing that is missing', async () => {
  const { world, ready } = setUp();
  world.keys = false;
  world.broker = false;
  expect(await ready()).toEqual({ accepting: true, broker: false, schemas: true, keys: false });
});

it('does not go off when the key store goes away after it has once been there', async () => {
  const { world, ready } = setUp();
  await ready();
  world.keys = false;
  expect(await ready()).toEqual({ accepting: true, broker: true, schemas: true, keys: true });
});

it('goes off with the brokers and with the start of a drain', async () => {
  const { world, ready } = setUp();
  world.broker = false;
  expect((await ready()).broker).toBe(false);
  world.accepting = false;
  expect((await ready()).accepting).toBe(false);
});
