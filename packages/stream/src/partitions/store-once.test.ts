import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { OversizeFault, RetryableFault } from '../ports.ts';
import { createTokenSink, type InsertOutcome, TokenStore } from '../test/token-store.ts';
import { createTokenNotes, storeOnce } from './store-once.ts';

const TOPIC = 'topic';

/** Owners of one block, each with its own notes, that write it in turn until it is stored. */
function openOwners(store: TokenStore, count: number, offsets: readonly number[]) {
  const end = Math.max(...offsets) + 1;
  const sink = createTokenSink(store);
  return Array.from({ length: count }, () => {
    const builder = sink.openBlock(TOPIC, 0);
    for (const offset of offsets)
      builder.add({
        topic: TOPIC,
        partition: 0,
        offset,
        timestampMs: 1,
        key: null,
        value: Buffer.from('row'),
        headers: {},
      });
    const name = { topic: TOPIC, partition: 0, start: 0, end, transformVersion: 1, firstTimestampMs: 1 };
    return (triedBefore: boolean) => builder.write({ ...name, triedBefore }, new AbortController().signal);
  });
}

const fates = fc.constantFrom<InsertOutcome>('stored', 'refused', 'halfway', 'unanswered', 'forgotten');

it('stores every row of a block once, whoever of its owners tries, whatever becomes of the inserts', async () => {
  const offsets = fc.uniqueArray(fc.nat(60), { minLength: 1, maxLength: 20 });
  const turns = fc.array(fc.nat(2), { maxLength: 40 });
  const property = fc.asyncProperty(
    ...[offsets, turns, fc.array(fates, { maxLength: 30 }), fc.constantFrom(1, 2, 4, 100)],
    async (offsets, turns, fatesLeft, rowsMax) => {
      const store = new TokenStore();
      store.rowsMax = rowsMax;
      store.onInsert = () => fatesLeft.shift() ?? 'stored';
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
      for (const owner of turns) await attempt(owner);
      while (!(await attempt(0)));
      const sorted = offsets.toSorted((one, other) => one - other);
      expect(store.offsets(TOPIC)).toEqual(sorted.map((offset) => `0/${offset}`));
    },
  );
  await fc.assert(property, { numRuns: 500 });
});

it('stores every row once, also when owners write at the same time and what they send arrives in any order', async () => {
  const order = fc.scheduler();
  const property = fc.asyncProperty(order, fc.array(fates, { maxLength: 12 }), async (scheduler, fatesLeft) => {
    const offsets = [0, 1, 2, 3, 4, 5, 6];
    const store = new TokenStore();
    store.onInsert = async () => {
      const fate = fatesLeft.shift() ?? 'stored';
      await scheduler.schedule(Promise.resolve(), fate);
      return fate;
    };
    const owners = openOwners(store, 3, offsets);
    const untilStored = async (write: (triedBefore: boolean) => Promise<void>, first: boolean) => {
      for (let triedBefore = !first; ; triedBefore = true)
        if (
          await write(triedBefore).then(
            () => true,
            () => false,
          )
        )
          return;
    };
    // The first owner may be a zombie that still takes the block for untried. Its result does not count.
    const all = Promise.all(owners.map((write, index) => untilStored(write, index === 0)));
    await scheduler.waitFor(all);
    expect(store.offsets(TOPIC)).toEqual(offsets.map((offset) => `0/${offset}`));
  });
  // A row doubled by two owners at its last token came once in ten thousand runs.
  await fc.assert(property, { numRuns: runsOf({ quick: 1_500, all: 5_000 }) });
});

it('stores a row once although its own token is used up, also when two owners get there at the same time', async () => {
  const store = new TokenStore();
  const fatesLeft: InsertOutcome[] = ['forgotten'];
  store.onInsert = async () => fatesLeft.shift() ?? 'stored';
  const [first, second, third] = openOwners(store, 3, [0]);
  await expect(first!(false)).rejects.toThrow(RetryableFault);
  await Promise.all([second!(true), third!(true)]);
  expect(store.offsets(TOPIC)).toEqual(['0/0']);
});

it('halves a block that is refused for its size until it fits, and asks for the whole of it a few times only', async () => {
  const offsets = Array.from({ length: 1_000 }, (_, offset) => offset);
  const store = new TokenStore();
  store.rowsMax = 300;
  const [write] = openOwners(store, 1, offsets);
  let refusals = 0;
  const attempt = () =>
    write!(refusals > 0).then(
      () => true,
      (fault) => !(fault instanceof OversizeFault),
    );
  while (!(await attempt())) refusals++;
  expect(store.offsets(TOPIC)).toHaveLength(1_000);
  expect(store.insertSizes.filter((rows) => rows === 1_000)).toHaveLength(5);
  expect(store.insertSizes.length).toBeLessThan(40);
});

it('refuses a table with several rows for one record: it could not tell which of them are stored, and would lose the others', async () => {
  const standing: number[] = [];
  let inserts = 0;
  const attempt = (triedBefore: boolean) =>
    storeOnce({
      start: 0,
      end: 2,
      triedBefore,
      notes: createTokenNotes(),
      tokenOf: (start, end) => `${start}-${end}`,
      rows: {
        // Rows 1 and 2 come from one record, and go to two parts: of the first insert only one part gets there.
        count: 3,
        offsetOf: (row) => [0, 1, 1][row]!,
        partOf: (row) => [0, 0, 1][row]!,
        insert: async (rows) => {
          const isHalf = inserts++ === 0;
          standing.push(...rows.filter((row) => !isHalf || row < 2));
          if (isHalf) throw new RetryableFault('halfway');
        },
        storedOffsets: async () => new Set(standing.map((row) => [0, 1, 1][row]!)),
      },
    });
  await expect(attempt(false)).rejects.toThrow('two rows of the record at 1');
  await expect(attempt(true)).rejects.toThrow('two rows of the record at 1');
  expect(inserts).toBe(0);
});
