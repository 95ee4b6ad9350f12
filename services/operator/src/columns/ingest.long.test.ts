import { TOPICS } from '@playline/contracts';
import { messageRecordOf } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LogFixture, openLogFixture } from '../test/log-fixture.ts';
import { runMain } from '../test/run-main.ts';

const BATCH = 50;

let fixture: LogFixture;
beforeAll(async () => {
  fixture = await openLogFixture();
  await fixture.startWriter();
});
afterAll(() => fixture.close());

it('events are stored once with the correct column value while columns are added and dropped', async () => {
  const { publish, toMessage, awaitCaughtUp, query } = fixture;
  const columns = (...args: string[]) => runMain(fixture.environment, ['columns', ...args]);
  let published = 0;
  let isDone = false;
  const ingest = async () => {
    while (!isDone) {
      const batch = Array.from({ length: BATCH }, () => {
        const coins = published++;
        return toMessage(messageRecordOf(`event ${coins}`, { properties: `{"coins":${coins}}` }));
      });
      await publish(batch);
      await awaitCaughtUp(TOPICS.messages.name);
    }
  };
  const ingesting = ingest();
  const codes: (number | null)[] = [];
  for (const args of [
    ['add', '--name', 'coins', '--path', 'coins', '--type', 'Int64'],
    ['add', '--name', 'other', '--path', 'coins', '--type', 'Float64', '--default=0'],
    ['drop', '--name', 'other', '--yes'],
  ])
    codes.push((await columns(...args)).code);
  isDone = true;
  await ingesting;
  expect(codes).toEqual([0, 0, 0]);
  const mismatch = "property_coins IS NULL OR event_name != concat('event ', toString(property_coins))";
  const stored = await query(`SELECT count(), uniqExact(event_name), countIf(${mismatch}) FROM events_exact`);
  expect(stored).toBe(`${published}\t${published}\t0`);
  // Fills parts from blocks that were being inserted when the column was added.
  expect(await columns('add', '--name', 'coins', '--path', 'coins', '--type', 'Int64')).toMatchObject({ code: 0 });
  const [column] = (await columns('list', '--json')).out.trim().split('\n');
  expect(JSON.parse(column!)).toMatchObject({ name: 'coins', partsToDo: 0 });
});
