import type { LogReader, StreamRecord } from '@playline/stream';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Flow, LoggedFact } from './flows.ts';
import type { OffsetRange, ReplacedLog } from './ranges.ts';
import { isClean, toLines } from './report.ts';
import type { Repeated, StoredRows } from './stored-rows.ts';
import { verifyFlow } from './verify-flow.ts';

interface Entry {
  readonly id: number | null;
  readonly isReadable: boolean;
  readonly isDead: boolean;
  readonly isFenced: boolean;
  readonly rows: readonly number[];
  /** Whether queries return rows with the same id once. */
  readonly isDeduplicated: boolean;
}

interface World {
  readonly start: number;
  readonly entries: readonly Entry[];
  readonly committed: number;
  readonly future: number;
}

const ids = fc.nat(25);
const entries: fc.Arbitrary<Entry> = fc
  .record({
    id: fc.option(ids, { freq: 8 }),
    isReadable: fc.integer({ min: 0, max: 9 }).map((n) => n > 0),
    isDead: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    isFenced: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    stored: fc.constantFrom('once', 'once', 'once', 'once', 'never', 'twice', 'deduplicated', 'other'),
    other: ids,
  })
  .map(({ stored, other, ...entry }) => {
    const { id } = entry;
    const rows =
      id === null ? [] : { once: [id], never: [], twice: [id, id], deduplicated: [id, id], other: [id, other] }[stored];
    return { ...entry, rows, isDeduplicated: stored === 'deduplicated' };
  });
const worlds: fc.Arbitrary<World> = fc
  .record({ start: fc.nat(20), entries: fc.array(entries, { maxLength: 60 }), future: fc.nat(2) })
  .chain((world) => fc.nat(world.entries.length).map((committed) => ({ ...world, committed })));

const flow = {
  topic: 'topic',
  table: 'rows',
  identity: 'id',
  copyRules: [{ columns: '', fromText: '' }],
} as unknown as Flow;

function openLog({ start, entries, committed }: World): LogReader {
  return {
    bounds: async () => [{ partition: 0, start, end: start + entries.length }],
    committed: async () => new Map([[0, start + committed]]),
    async *read({ topic, partition, start: from, end }) {
      for (const [index, { id }] of entries.entries()) {
        const offset = start + index;
        if (id === null || offset < from || offset >= end) continue;
        const record: StreamRecord = { topic, partition, offset, timestampMs: 0, key: null, value: null, headers: {} };
        yield record;
      }
    },
    close: async () => {},
  };
}

const BUCKET = 4;

/** Creates the stored rows of a world, with linear searches instead of queries. */
function createStored({ start, entries, future }: World): StoredRows {
  const rows = entries.flatMap((entry, index) => entry.rows.map((id) => ({ offset: start + index, id })));
  for (let index = 0; index < future; index++) rows.push({ offset: start + entries.length + index, id: 99 });
  const within = ({ start: from, end }: OffsetRange) => rows.filter(({ offset }) => offset >= from && offset < end);
  return {
    async *counts(_table, ranges) {
      const withinRanges = ranges.flatMap(within);
      for (const index of new Set(withinRanges.map(({ offset }) => Math.floor(offset / BUCKET)))) {
        const atOffset = withinRanges.filter(({ offset }) => Math.floor(offset / BUCKET) === index);
        yield {
          partition: 0,
          index,
          rows: atOffset.length,
          offsets: new Set(atOffset.map(({ offset }) => offset)).size,
        };
      }
    },
    missing: async (_table, range) => {
      const present = new Set(within(range).map(({ offset }) => offset));
      const all = Array.from({ length: range.end - range.start }, (_, index) => range.start + index);
      return all.filter((offset) => !present.has(offset)).map((offset) => ({ start: offset, end: offset + 1 }));
    },
    repeated: async (_table, range) => {
      const found: Repeated = { repeatedRecords: 0, doubledRows: 0, overlappingOffsets: 0, examples: [] };
      for (const offset of new Set(within(range).map((row) => row.offset))) {
        const atOffset = within(range).filter((row) => row.offset === offset);
        const different = new Set(atOffset.map(({ id }) => id)).size;
        const extra = atOffset.length - different;
        if (entries[offset - start]!.isDeduplicated) found.repeatedRecords += extra;
        else found.doubledRows += extra;
        if (different > 1) found.overlappingOffsets++;
      }
      return found;
    },
    lastOffsets: async () => new Map(rows.length === 0 ? [] : [[0, Math.max(...rows.map(({ offset }) => offset))]]),
    countFrom: async (_table, { offset: from }) => rows.filter(({ offset }) => offset >= from).length,
    findCopies: async (_table, _rule, lists) =>
      new Set(lists.flatMap(([id], index) => (rows.some((row) => String(row.id) === id) ? [index] : []))),
  };
}

/** A reference implementation that checks every offset, without buckets or ranges. */
function tally({ entries, committed, future }: World, stored = new Set(entries.flatMap(({ rows }) => rows))) {
  const totals = {
    lost: 0,
    repeatedRecords: 0,
    doubledRows: 0,
    overlapping: 0,
    copy: 0,
    deadLetter: 0,
    fence: 0,
    holes: 0,
  };
  for (const { id, rows, ...entry } of entries.slice(0, committed)) {
    totals[entry.isDeduplicated ? 'repeatedRecords' : 'doubledRows'] += rows.length - new Set(rows).size;
    totals.overlapping += Number(new Set(rows).size > 1);
    if (rows.length > 0) continue;
    if (id === null) totals.holes++;
    else if (entry.isDead) totals.deadLetter++;
    else if (entry.isReadable && entry.isFenced) totals.fence++;
    else if (entry.isReadable && stored.has(id)) totals.copy++;
    else totals.lost++;
  }
  return { ...totals, futureRows: future };
}

const toFact = ({ id, isFenced }: Entry): LoggedFact => {
  const fact = { environmentId: '', key: Buffer.from('fenced'), eventTimeMs: 0, receivedAtMs: 0 };
  return { isFencedOut: (isFencedBy) => isFenced && isFencedBy(fact), copies: [[String(id)]] };
};

async function verifyWorld(world: World, replaced: ReadonlyMap<string, ReplacedLog>) {
  const entryAt = (offset: number) => world.entries[offset - world.start]!;
  const [report] = await verifyFlow(flow, {
    log: openLog(world),
    stored: createStored(world),
    readFact: async (_flow, { offset }) => (entryAt(offset).isReadable ? toFact(entryAt(offset)) : null),
    readDeadOffsets: async () => ({ has: (_topic, _partition, offset) => entryAt(offset).isDead }),
    readIsFenced:
      async () =>
      ({ key }) =>
        String(key) === 'fenced',
    replaced,
    topicPrefix: '',
    group: 'writer',
    bucketSize: BUCKET,
    onProgress: () => {},
  });
  return report!;
}

it('verifyFlow finds the same gaps, duplicates and overlaps as a check of every offset', async () => {
  await fc.assert(
    fc.asyncProperty(worlds, async (world) => {
      const report = await verifyWorld(world, new Map());
      const { lost, repeatedRecords, doubledRows, overlapping, holes, futureRows, excused } = report;
      expect(isClean({ partitions: [report], persons: null, derived: [] })).toBe(
        lost + doubledRows + overlapping + futureRows === 0,
      );
      expect({ lost, repeatedRecords, doubledRows, overlapping, holes, futureRows, ...excused }).toEqual(tally(world));
    }),
    { numRuns: 200 },
  );
});

it('verifyFlow matches records of a replaced log by content, and ignores rows from the lost log', async () => {
  const property = fc.asyncProperty(worlds, fc.nat(60), fc.nat(60), async (world, from, length) => {
    const start = world.start + from;
    const range = { start, end: start + length };
    const report = await verifyWorld(world, new Map([['topic/0', { ranges: [range], undecided: null }]]));
    const isReplaced = (index: number) => index >= from && index < from + length;
    const { entries, committed } = world;
    const stored = new Set(entries.flatMap(({ rows }) => rows));
    const replacedEntries = entries.slice(0, committed).filter((_, index) => isReplaced(index));
    const lost = replacedEntries.filter(
      ({ id, isDead, isReadable, isFenced }) =>
        id !== null && !isDead && (!isReadable || (!isFenced && !stored.has(id))),
    ).length;
    // Outside of the range, the result is the same as without the range, except that copies in the range are found.
    const others = entries.map((entry, index) => (isReplaced(index) ? { ...entry, id: null, rows: [] } : entry));
    const expected = tally({ ...world, entries: others }, stored);
    expect(report.replaced).toBe(replacedEntries.length);
    expect(report.lost).toBe(lost + expected.lost);
    expect([report.doubledRows, report.overlapping]).toEqual([expected.doubledRows, expected.overlapping]);
    const end = world.start + entries.length;
    expect(report.futureRows).toBe(Math.max(0, end + world.future - Math.max(end, range.end)));
  });
  await fc.assert(property, { numRuns: 200 });
});

it('verifyFlow reports a replaced log, and checks its records up to the offset at which the logs diverge', async () => {
  const property = fc.asyncProperty(worlds, fc.nat(60), async (world, at) => {
    const divergesAt = Math.min(world.start + at, world.start + world.entries.length);
    const undecided = { finding: 'it was truncated', divergesAt };
    const report = await verifyWorld(world, new Map([['topic/0', { ranges: [], undecided }]]));
    expect(report.undecided).toBe('it was truncated');
    expect(report.committed).toBe(Math.min(world.start + world.committed, divergesAt));
    expect(isClean({ partitions: [report], persons: null, derived: [] })).toBe(false);
    expect(toLines({ partitions: [report], persons: null, derived: [] }).join('\n')).toContain('npm run offsets');
  });
  await fc.assert(property);
});
