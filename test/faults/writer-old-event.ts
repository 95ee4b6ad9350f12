import assert from 'node:assert/strict';
import { TOPICS } from '@playline/contracts';
import { deliver } from './linker-persons.ts';
import { rowsOf } from './world/clickhouse.ts';
import { settle } from './world/end-check.ts';
import type { Scenario } from './world/trial.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** A day less than the oldest event that the contract accepts. The log keeps records for a tenth of that time. */
const AGE_MS = 29 * DAY_MS;

export const oldEventKept: Scenario = {
  fault: 9,
  title: 'an event of 29 days ago stays in the log as long as any other, and is stored with its own time',
  tried: 'events 29 days old, writer away while they come in',
  crew: { linkers: 1, writers: 0 },
  run: async ({ world, start, key, ledger, environmentId }) => {
    assert.ok(TOPICS.messages.retentionMs < AGE_MS, 'older than the log keeps records');
    const gateway = await start('gateway');
    const beganAtMs = Date.now();
    const eventTimestamp = new Date(beganAtMs - AGE_MS).toISOString();
    const message = { type: 'track', eventName: 'old', anonymousId: 'a', eventTimestamp };
    const [messageId] = await deliver({ ledger, gateway, key }, [message]);
    // Retention uses the time of the record, and deletes a segment when its youngest record is too old.
    const topic = world.deployment.topicPrefix + TOPICS.messages.name;
    for (const { partition, start: from, end } of await world.log.bounds(topic))
      for await (const record of world.log.read({ topic, partition, start: from, end }))
        assert.ok(record.timestampMs >= beganAtMs - DAY_MS, `record time ${record.timestampMs}`);
    await world.setCrew({ linkers: 1, writers: 1 });
    await settle(world);
    const stored = await rowsOf(
      world.deployment.engine,
      `SELECT toUnixTimestamp64Milli(event_time) FROM events_exact
       WHERE environment_id = '${environmentId}' AND message_id = '${messageId}'`,
    );
    assert.deepEqual(stored, [[String(Date.parse(eventTimestamp))]]);
    return { 'events older than the log keeps records': stored.length };
  },
};
