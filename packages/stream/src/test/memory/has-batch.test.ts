import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { openFilledLog } from './open-filled-log.ts';

const TOPIC = 'topic';

async function hasBatchAfter(change: (log: ReturnType<typeof openFilledLog>['log']) => void): Promise<boolean | null> {
  const { log, append } = openFilledLog(TOPIC);
  await append(10);
  const gate = Promise.withResolvers<void>();
  const results: (boolean | null)[] = [];
  const consumer = log.openRecordConsumer({
    topics: [TOPIC],
    onAssign: async ({ committed, hasBatch }) => {
      await gate.promise;
      results.push(await hasBatch({ base: 3, epoch: 0, crc: 3 }));
      return committed;
    },
    onBatch: async () => {},
  });
  change(log);
  gate.resolve();
  await until('hasBatch has returned', () => results.length > 0);
  await consumer.close();
  return results[0]!;
}

it.each([
  ['nothing happened', () => {}, true],
  ['retention deleted the batch', (log) => log.expire(TOPIC, 0, 5), null],
  ['the log was truncated', (log) => log.truncate(TOPIC, 0, 2), false],
] as [string, Parameters<typeof hasBatchAfter>[0], boolean | null][])(
  'hasBatch returns the correct result if %s after the assignment',
  async (_, change, expected) => expect(await hasBatchAfter(change)).toBe(expected),
);

it('a handler that starts before the committed offset receives the batch before each position', async () => {
  const { log, append } = openFilledLog(TOPIC);
  await append(10);
  const markBases: (number | null)[] = [];
  const open = (start: number | null) =>
    log.openRecordConsumer({
      topics: [TOPIC],
      batchRecordsMax: 2,
      onAssign: async ({ committed }) => start ?? committed,
      onBatch: async (_, { mark }) => void markBases.push(mark?.base ?? null),
    });
  const first = open(null);
  await until('all records are committed', () => log.committed(TOPIC, 0) === 10);
  await first.close();
  markBases.length = 0;
  const restarted = open(4);
  await until('all records are reread', () => markBases.length === 3);
  await restarted.close();
  // In the memory log every record is a batch, so the batch before offset 6 has offset 5.
  expect(markBases).toEqual([5, 7, 9]);
});
