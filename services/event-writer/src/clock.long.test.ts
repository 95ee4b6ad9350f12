import { messageRecordCodec, TOPICS } from '@playline/contracts';
import { messageRecordOf, overrideWallClock, testStores, until } from '@playline/testkit';
import { type Admin, Kafka, logLevel } from 'kafkajs';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { openRealStores, type RealStores } from './test/open-stores.ts';

const HOUR_MS = 3_600_000;
/** Twice the session timeout, after which a member without heartbeats has lost its partitions. */
const WATCHED_MS = 5_000;

let stores: RealStores;
let admin: Admin;
beforeAll(async () => {
  admin = new Kafka({ clientId: 'test', brokers: testStores().kafka, logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  stores = await openRealStores([TOPICS.messages.name]);
});
afterEach(() => stores.killWriters());
afterAll(async () => {
  await admin.disconnect();
  await stores.close();
});

it('a writer stores each message once even if the wall clock is set back and forward by an hour', async () => {
  const environmentId = 'test-clock';
  const clock = overrideWallClock();
  const writer = await stores.startWriter('clock', { ...clock.environment, BLOCK_AGE_MAX_MS: '250' });
  let sent = 0;
  const publish = async () => {
    const record = messageRecordOf('tick', { environmentId });
    await stores.publish([stores.outgoing(TOPICS.messages, messageRecordCodec, record)]);
    sent++;
  };
  const stored = async () => {
    const text = `SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(message_id)) AS ids FROM events WHERE environment_id = '${environmentId}'`;
    return (await stores.readRows<{ rows: number; ids: number }>(text))[0]!;
  };
  const isStored = async () => (await stored()).ids === sent;
  await publish();
  await until('the first event is stored', isStored);
  for (const shiftMs of [-HOUR_MS, HOUR_MS]) {
    await clock.set(writer, shiftMs);
    const endMs = performance.now() + WATCHED_MS;
    // Nothing is published here, because a commit would count as a heartbeat.
    while (performance.now() < endMs) {
      const { groups } = await admin.describeGroups([`${stores.prefix}clock`]);
      expect(groups[0]).toMatchObject({ state: 'Stable', members: [expect.anything()] });
    }
    for (let count = 0; count < 5; count++) {
      await publish();
      await until('the event is stored', isStored, 10_000);
    }
  }
  expect(await stored()).toEqual({ rows: sent, ids: sent });
  expect(await stores.stop(writer, 'SIGTERM')).toBe(0);
  clock.close();
});
