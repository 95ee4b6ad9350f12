import { createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { LogReader } from '../../log.ts';
import { SETTLED_OFFSET } from '../../partitions/dead-letters.ts';
import type { StreamRecord } from '../../ports.ts';
import { createDeadLetterCounter, reportDeadLetterCounts } from './dead-letter-count.ts';

function createLog() {
  const records: StreamRecord[] = [];
  const log = { start: 0, down: false };
  const add = (headers: StreamRecord['headers']) => {
    const at = { topic: 'a.dead', partition: 0, offset: records.length };
    records.push({ ...at, timestampMs: 1, key: null, value: Buffer.alloc(0), headers });
    return at.offset;
  };
  const reader: LogReader = {
    bounds: async (topic) => {
      if (log.down) throw new Error('no broker');
      return topic === 'a.dead' ? [{ partition: 0, start: log.start, end: records.length }] : [];
    },
    committed: async () => new Map(),
    read: async function* ({ start, end }) {
      yield* records.slice(start, end);
    },
    close: async () => {},
  };
  return {
    log,
    reader,
    size: () => records.length,
    addDeadLetter: () => add({ reason: 'poison', 'original-topic': 'a' }),
    settle: (offset: number) => void add({ [SETTLED_OFFSET]: String(offset), 'settled-as': 'replayed' }),
  };
}

it('the dead-letter counter counts dead letters that are neither settled nor deleted', async () => {
  const step = fc.oneof(
    fc.constant('add' as const),
    fc.constant('refresh' as const),
    fc.record({ settle: fc.nat(30) }),
    fc.record({ expire: fc.nat(5) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { log, reader, addDeadLetter, settle, size } = createLog();
      const counter = createDeadLetterCounter(reader, ['a']);
      const open = new Set<number>();
      for (const each of steps) {
        if (each === 'add') open.add(addDeadLetter());
        else if (each === 'refresh') await counter.refresh();
        else if ('settle' in each && open.delete(each.settle)) settle(each.settle);
        else if ('expire' in each) log.start = Math.min(size(), log.start + each.expire);
        for (const offset of open) if (offset < log.start) open.delete(offset);
      }
      await counter.refresh();
      expect(counter.counts().get('a')).toBe(open.size);
    }),
  );
});

it.each([
  [5, 5],
  [4, 4],
  [100, 12],
])('a dead-letter counter with a limit of %i counts %i dead letters in three partitions', async (openMax, counted) => {
  const { reader, addDeadLetter } = createLog();
  for (let added = 0; added < 4; added++) addDeadLetter();
  const bounds = async () => [0, 1, 2].map((partition) => ({ partition, start: 0, end: 4 }));
  const counter = createDeadLetterCounter({ ...reader, bounds }, ['a'], openMax);
  await counter.refresh();
  expect(counter.counts().get('a')).toBe(counted);
});

it('the open dead-letter metric retains its last value while the log does not respond', async () => {
  const { log, reader, addDeadLetter } = createLog();
  const metrics = createMetrics('test');
  addDeadLetter();
  reportDeadLetterCounts(createDeadLetterCounter(reader, ['a', 'without']), metrics);
  const read = async () =>
    (await metrics.text()).split('\n').filter((line) => line.startsWith('playline_stream_open_dead_letters{'));
  const expected = ['a', 'without'].map(
    (topic, at) => `playline_stream_open_dead_letters{topic="${topic}",service="test"} ${1 - at}`,
  );
  await until('the first value is reported', async () => (await read()).length === 2);
  expect(await read()).toEqual(expected);
  log.down = true;
  expect(await read()).toEqual(expected);
});
