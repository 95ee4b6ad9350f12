import { expect, it } from 'vitest';
import { createWorld, DEPTH } from '../test/lane-world.ts';

it('begins nothing while a sent transaction is in the pool that the log has lost, and mints nothing twice', async () => {
  const { takeOver, request, mine, node, log, last, tokens, time } = createWorld();
  const lane = await takeOver();
  await lane.take([request('a')]);
  await lane.turn();
  mine(DEPTH + 1);
  await lane.turn();
  await lane.take([request('b')]);
  const [states, transactions] = [log.states.length, log.transactions.length];
  await lane.turn();
  expect(last('b')).toMatchObject({ stage: 'logged', nonce: 1 });
  // All brokers lose power at once, and with it the end of the log.
  log.states.splice(states);
  log.transactions.splice(transactions);
  // With other fees the transaction would have other bytes.
  node.baseFee = 12n;
  const next = await takeOver();
  for (let turns = 0; turns < 4 * DEPTH; turns++) {
    time.ms += 10_000;
    await next.turn();
    mine(1);
  }
  expect(tokens()).toBe(2);
  expect(last('b')).toMatchObject({ stage: 'waiting', nonce: null, reason: expect.stringContaining('not known here') });
  expect(log.transactions).toHaveLength(transactions);
});
