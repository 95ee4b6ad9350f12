import { setImmediate as nextTurn } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { send } from '../producer-contract.ts';
import { createTokenSink, type InsertOutcome, TokenStore } from '../token-store.ts';
import { createMemoryLog } from './index.ts';

const TOPIC = 'topic';
const ROWS = 6;
const limits = { rowsMax: ROWS, bytesMax: 1_000_000, ageMaxMs: 1 };

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => void vi.useRealTimers());

it('a block with a committed intent keeps its token if retention deletes its first records', async () => {
  const log = createMemoryLog({ partitions: 1 });
  const producer = log.openProducer();
  for (let i = 0; i < ROWS; i++) {
    vi.setSystemTime(1_000 + i);
    await send(producer, [{ topic: TOPIC, key: null, value: Buffer.from(`record ${i}`) }]);
  }
  const store = new TokenStore();
  const firstInsert = Promise.withResolvers<InsertOutcome>();
  let inserts = 0;
  store.onInsert = () => (inserts++ === 0 ? firstInsert.promise : 'stored');
  const open = () => log.openBlockConsumer({ topics: [TOPIC], sink: createTokenSink(store), limits });
  const killedConsumer = open();
  await until('an insert is in flight', () => inserts === 1);
  killedConsumer.kill();
  log.expire(TOPIC, 0, 2);
  const next = open();
  await until('the block is committed', () => log.committed(TOPIC, 0) === ROWS);
  firstInsert.resolve('stored');
  for (let i = 0; i < 5; i++) await nextTurn();
  await next.close();
  expect(store.offsets(TOPIC)).toEqual(['0/2', '0/3', '0/4', '0/5']);
});
