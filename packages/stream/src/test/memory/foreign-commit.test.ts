import { setImmediate as nextTurn } from 'node:timers/promises';
import { createLogger } from '@playline/runtime';
import { until } from '@playline/testkit';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createTokenSink, TokenStore } from '../token-store.ts';
import { openFilledLog } from './open-filled-log.ts';

const AT = { topic: 'topic', partition: 0 };

/** Creates a log with one partition of `read` stored records and `unread` further records, and no running consumer. */
async function openBench({ read, unread }: { read: number; unread: number }) {
  const { log, append } = openFilledLog(AT.topic);
  const store = new TokenStore();
  const lines: string[] = [];
  const logger = createLogger({ service: 'test', level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const limits = { rowsMax: 3, bytesMax: 1_000_000, ageMaxMs: 1 };
  const open = () => log.openBlockConsumer({ topics: [AT.topic], sink: createTokenSink(store), limits, logger });
  await append(read);
  const previous = open();
  await previous.idle();
  await previous.close();
  await append(unread);
  return { log, store, lines, open };
}

it.each([
  ['no metadata', ''],
  ['metadata from another tool', 'moved by hand'],
])('a partition whose offset was committed with %s is paused and reports the command to run', async (_, metadata) => {
  const { log, store, lines, open } = await openBench({ read: 5, unread: 10 });
  log.moveCommit({ ...AT, offset: 12, metadata });
  const consumer = open();
  for (let i = 0; i < 20; i++) await nextTurn();
  expect(store.rows).toHaveLength(5);
  expect(consumer.ready()).toBe(false);
  expect([...consumer.blockers().values()].join()).toMatch(/another tool committed offset 12/);
  expect(lines.join('\n')).toContain('npm run offsets -- accept --group group --topic topic --partition 0');
  expect(log.committed(AT.topic, 0)).toBe(12);
  await consumer.close();
});

it('after a decision about a commit by another tool, every record from the chosen offset on has one row', async () => {
  const property = fc.asyncProperty(fc.nat(9), fc.nat(9), fc.nat(), fc.nat(), async (read, unread, moved, decided) => {
    const { log, store, open } = await openBench({ read: read + 1, unread });
    const end = read + 1 + unread;
    const from = decided % (end + 1);
    log.moveCommit({ ...AT, offset: moved % (end + 1) });
    log.decide({ ...AT, from });
    const consumer = open();
    await until('the consumer is ready', () => consumer.ready());
    await consumer.idle();
    await consumer.close();
    const offsets = store.rows.map(({ text }) => Number(text.split(' ')[1])).sort((a, b) => a - b);
    const expected = Array.from({ length: end }, (_, offset) => offset).filter((at) => at <= read || at >= from);
    expect(offsets).toEqual(expected);
  });
  await fc.assert(property, { numRuns: 60 });
});

it('a group without commits reads a log from its start, even if the log is empty', async () => {
  const { log, store, open } = await openBench({ read: 0, unread: 0 });
  const consumer = open();
  expect(consumer.ready()).toBe(true);
  await consumer.close();
  expect(log.committed(AT.topic, 0)).toBe(0);
  expect(store.rows).toEqual([]);
});
