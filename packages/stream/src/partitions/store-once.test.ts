import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { OversizeFault, RetryableFault } from '../ports.ts';
import { toRecords } from '../test/fake-log.ts';
import { createTokenSink, type InsertOutcome, TokenStore } from '../test/token-store.ts';
import { createTokenNotes, storeOnce } from './store-once.ts';

const TOPIC = 'topic';

function openOwners(store: TokenStore, count: number, offsets: readonly number[]) {
  const end = Math.max(...offsets) + 1;
  const sink = createTokenSink(store);
  return Array.from({ length: count }, () => {
    const builder = sink.openBlock(TOPIC, 0);
    for (const offset of offsets) builder.add(toRecords(['row'], offset)[0]!);
    const name = { topic: TOPIC, partition: 0, start: 0, end, transformVersion: 1, firstTimestampMs: 1 };
    return (triedBefore: boolean) => builder.write({ ...name, triedBefore }, new AbortController().signal);
  });
}

const outcomes = fc.constantFrom<InsertOutcome>('stored', 'refused', 'partial', 'response lost', 'token only');

it('every row of a block is stored once for any sequence of owners and insert outcomes', async () => {
  const offsets = fc.uniqueArray(fc.nat(60), { minLength: 1, maxLength: 20 });
  const sequence = fc.array(fc.nat(2), { maxLength: 40 });
  const property = fc.asyncProperty(
    ...[offsets, sequence, fc.array(outcomes, { maxLength: 30 }), fc.constantFrom(1, 2, 4, 100)],
    async (offsets, sequence, remaining, rowsMax) => {
      const store = new TokenStore();
      store.rowsMax = rowsMax;
      store.onInsert = () => remaining.shift() ?? 'stored';
      const owners = openOwners(store, 3, offsets);
      let tried = false;
      const attempt = async (owner: number) => {
        const triedBefore = tried;
        tried = true;
        return await owners[owner]!(triedBefore).then(
          () => true,
          (fault) => {
            expect(fault).toBeInstanceOf(RetryableFault);
            return false;
          },
        );
      };
      for (const owner of sequence) await attempt(owner);
      while (!(await attempt(0)));
      const sorted = offsets.toSorted((a, b) => a - b);
      expect(store.offsets(TOPIC)).toEqual(sorted.map((offset) => `0/${offset}`));
    },
  );
  await fc.assert(property, { numRuns: 200 });
});

it('every row of a block is stored once when owners write concurrently and inserts arrive in any order', async () => {
  const order = fc.scheduler();
  const property = fc.asyncProperty(order, fc.array(outcomes, { maxLength: 12 }), async (scheduler, remaining) => {
    const offsets = [0, 1, 2, 3, 4, 5, 6];
    const store = new TokenStore();
    store.onInsert = async () => {
      const outcome = remaining.shift() ?? 'stored';
      await scheduler.schedule(Promise.resolve(), outcome);
      return outcome;
    };
    const owners = openOwners(store, 3, offsets);
    const untilStored = async (write: (triedBefore: boolean) => Promise<void>, first: boolean) => {
      const attempt = (triedBefore: boolean) =>
        write(triedBefore).then(
          () => true,
          () => false,
        );
      for (let triedBefore = !first; !(await attempt(triedBefore)); triedBefore = true);
    };
    // The first owner may be a zombie that still considers the block untried. Its result is ignored.
    const all = Promise.all(owners.map((write, index) => untilStored(write, index === 0)));
    await scheduler.waitFor(all);
    expect(store.offsets(TOPIC)).toEqual(offsets.map((offset) => `0/${offset}`));
  });
  // Many runs, because two owners duplicated a row at its last token in only one of ten thousand runs.
  await fc.assert(property, { numRuns: runsOf({ quick: 500, all: 5_000 }) });
});

it("two concurrent owners store a row once even if the store has the row's token but not the row", async () => {
  const store = new TokenStore();
  const remaining: InsertOutcome[] = ['token only'];
  store.onInsert = async () => remaining.shift() ?? 'stored';
  const [first, second, third] = openOwners(store, 3, [0]);
  await expect(first!(false)).rejects.toThrow(RetryableFault);
  await Promise.all([second!(true), third!(true)]);
  expect(store.offsets(TOPIC)).toEqual(['0/0']);
});

it('a block that is rejected because of its size is halved after a few attempts', async () => {
  const offsets = Array.from({ length: 1_000 }, (_, offset) => offset);
  const store = new TokenStore();
  store.rowsMax = 300;
  const [write] = openOwners(store, 1, offsets);
  let rejections = 0;
  const attempt = () =>
    write!(rejections > 0).then(
      () => true,
      (fault) => !(fault instanceof OversizeFault),
    );
  while (!(await attempt())) rejections++;
  expect(store.offsets(TOPIC)).toHaveLength(1_000);
  expect(store.insertSizes.filter((rows) => rows === 1_000)).toHaveLength(5);
  expect(store.insertSizes.length).toBeLessThan(40);
});

it('two rows from one record for the same table are rejected before anything is sent', async () => {
  const insert = vi.fn();
  const attempt = (triedBefore: boolean) =>
    storeOnce({
      start: 0,
      end: 2,
      triedBefore,
      notes: createTokenNotes(),
      tokenOf: (start, end) => `${start}-${end}`,
      rows: {
        count: 3,
        offsetOf: (row) => [0, 1, 1][row]!,
        partOf: (row) => [0, 0, 1][row]!,
        insert,
        storedOffsets: async () => new Set(),
      },
    });
  for (const triedBefore of [false, true])
    await expect(attempt(triedBefore)).rejects.toThrow('two rows from the record at offset 1');
  expect(insert).not.toHaveBeenCalled();
});
