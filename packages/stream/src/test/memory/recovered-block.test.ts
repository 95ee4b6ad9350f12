import { setImmediate as turn } from 'node:timers/promises';
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

it('a named block keeps its name when retention deletes its first records before the next owner rebuilds it', async () => {
  const log = createMemoryLog({ partitions: 1 });
  const producer = log.openProducer();
  for (let i = 0; i < ROWS; i++) {
    vi.setSystemTime(1_000 + i);
    await send(producer, [{ topic: TOPIC, key: null, value: Buffer.from(`record ${i}`) }]);
  }
  const store = new TokenStore();
  const late = Promise.withResolvers<InsertOutcome>();
  let inserts = 0;
  store.onInsert = () => (inserts++ === 0 ? late.promise : 'stored');
  const open = () => log.openBlockConsumer({ topics: [TOPIC], sink: createTokenSink(store), limits });
  const dead = open();
  await until('an insert in flight', () => inserts === 1);
  dead.kill();
  log.expire(TOPIC, 0, 2);
  const next = open();
  await until('the block is committed', () => log.committed(TOPIC, 0) === ROWS);
  late.resolve('stored');
  for (let i = 0; i < 5; i++) await turn();
  await next.close();
  expect(store.offsets(TOPIC)).toEqual(['0/2', '0/3', '0/4', '0/5']);
});
