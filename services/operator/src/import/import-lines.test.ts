import { type ActivityRow, createParseActivity } from '@playline/chain';
import type { ActivityRecord } from '@playline/contracts';
import { runsOf } from '@playline/testkit/runs';

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Imported, type ImportOptions, importLines } from './importer.ts';
import type { Line } from './lines.ts';
import { ACTIVITIES } from './subjects.ts';
import { lineOf } from './test/lines.ts';

const parse = createParseActivity({ chain: null, traceId: 'ab'.repeat(16) });
const rowOf = (value: unknown): ActivityRow => {
  const parsed = parse(value);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return ACTIVITIES.toRow(parsed.record);
};

class Killed extends Error {}

class World {
  readonly log: ActivityRow[] = [];
  stored = 0;
  readonly refused: string[] = [];
  killAfter = Number.POSITIVE_INFINITY;

  /** Determines the current versions in a log, like the writer. */
  static fold(log: readonly ActivityRow[]): Map<string, ActivityRow> {
    const current = new Map<string, ActivityRow>();
    for (const row of log) {
      const before = current.get(row.id);
      if (before === undefined || (before.type === row.type && before.indexedAt === row.indexedAt))
        current.set(row.id, row);
    }
    return current;
  }

  import(
    values: readonly unknown[],
    changes: Partial<ImportOptions<ActivityRecord, ActivityRow>> = {},
  ): Promise<Imported> {
    const tail = Map.groupBy(this.log.slice(this.stored), ({ id }) => id);
    return importLines({
      subject: ACTIVITIES,
      parse,
      tail,
      lines: async function* (): AsyncGenerator<Line> {
        for (const [index, value] of values.entries()) yield { number: index + 1, value, fault: null };
      },
      readStored: async (rows) => {
        const current = World.fold(this.log.slice(0, this.stored));
        return new Map(rows.flatMap(({ id }) => (current.has(id) ? [[id, current.get(id)!] as const] : [])));
      },
      publish: async (records) => {
        for (const record of records) {
          if (this.killAfter-- <= 0) throw new Killed();
          this.log.push(ACTIVITIES.toRow(record));
        }
      },
      onRefused: (number, faults) => void this.refused.push(`${number}: ${faults.join('; ')}`),
      onProgress: () => {},
      stop: new AbortController().signal,
      ...changes,
    });
  }
}

/** Generates few distinct activities, contents and types, so that lines repeat, update and contradict each other. */
const arbitraryLine = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({ number: fc.nat(5), amount: fc.nat(2), type: fc.constantFrom('mint', 'mint', 'deposit') }),
  },
  { weight: 1, arbitrary: fc.constant(null) },
);
const toValues = (generated: readonly ({ number: number; amount: number; type: string } | null)[]) =>
  generated.map((each) => each && lineOf(each.number, { amount: each.amount, type: each.type }));
const contents = (current: ReadonlyMap<string, ActivityRow>) =>
  new Map([...current].map(([id, { type, details }]) => [id, `${type} ${details}`]));

it('an import fails if the input loses lines between validation and publication', async () => {
  const world = new World();
  let reads = 0;
  const lines = async function* (): AsyncGenerator<Line> {
    yield { number: 1, value: lineOf(1), fault: null };
    if (reads++ === 0) yield { number: 2, value: lineOf(2), fault: null };
  };
  await expect(world.import([], { lines })).rejects.toThrow('the lines changed during the import');
  expect(world.log).toHaveLength(1);
});

it('an import that is killed and repeated publishes each change exactly once, even if the writer lags', async () => {
  const lines = fc.array(arbitraryLine, { maxLength: 30 });
  const killedRuns = fc.array(fc.record({ killAfter: fc.nat(6), stored: fc.nat(40) }), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(lines, lines, killedRuns, fc.nat(30), async (earlier, generated, killed, stored) => {
      const world = new World();
      world.log.push(...toValues(earlier).flatMap((value) => (value === null ? [] : [rowOf(value)])));
      world.stored = Math.min(stored, world.log.length);
      const [before, logged] = [World.fold(world.log), world.log.length];
      const values = toValues(generated);
      const expected = World.fold([...world.log, ...values.flatMap((value) => (value === null ? [] : [rowOf(value)]))]);
      for (const run of killed) {
        world.killAfter = run.killAfter;
        await world.import(values).catch((fault: unknown) => {
          if (!(fault instanceof Killed)) throw fault;
        });
        world.stored = Math.min(world.log.length, world.stored + run.stored);
      }
      world.killAfter = Number.POSITIVE_INFINITY;
      const last = await world.import(values);
      expect(contents(World.fold(world.log))).toEqual(contents(expected));
      // All runs together publish exactly one new version of each changed activity.
      const [previous, current] = [contents(before), contents(expected)];
      const changed = [...current].filter(([id, content]) => previous.get(id) !== content).map(([id]) => id);
      expect(
        world.log
          .slice(logged)
          .map(({ id }) => id)
          .toSorted(),
      ).toEqual(changed.toSorted());
      expect(last.published + last.unchanged + last.superseded + last.refused).toBe(last.lines);
      expect((await world.import(values)).published).toBe(0);
    }),
    { numRuns: runsOf({ quick: 60, all: 300 }) },
  );
});

it('an import publishes several batches in line order', async () => {
  const world = new World();
  const values = Array.from({ length: 1_700 }, (_, number) => lineOf(number));
  const progress: string[] = [];
  const imported = await world.import(values, { onProgress: (line) => void progress.push(line) });
  expect(imported).toEqual({ lines: 1_700, published: 1_700, unchanged: 0, superseded: 0, refused: 0 });
  expect(world.log.map(({ id }) => id)).toEqual(values.map(({ id }) => id));
  expect(progress.filter((line) => line.endsWith('published'))).toEqual(
    [500, 1_000, 1_500, 1_700].map((count) => `${count} of 1700 published`),
  );
  expect(progress[0]).toBe('500 lines compared, 0 refused');
});

it('an import reports all errors of each invalid line, and continues with the next line', async () => {
  const world = new World();
  const invalidLine = { ...lineOf(2), chain: 'Demo Chain', indexed_at: 'yesterday' };
  const imported = await world.import([lineOf(1), invalidLine, 7, lineOf(3), { ...lineOf(1), type: 'deposit' }]);
  expect(imported).toMatchObject({ published: 2, refused: 3, superseded: 0 });
  expect(world.refused[0]).toContain('2: ');
  expect(world.refused[0]).toContain('chain is not a chain name');
  expect(world.refused[0]).toContain('indexed_at is not an RFC 3339 timestamp');
  expect(world.refused[1]).toMatch(/^3: /);
  expect(world.refused[2]).toBe('5: type would be changed, which is not allowed');
});

it('an import compares lines with the last version in the log that the writer will accept', async () => {
  const world = new World();
  world.log.push(...[lineOf(1, { amount: 1 }), lineOf(1, { amount: 2 }), lineOf(1, { type: 'deposit' })].map(rowOf));
  expect(await world.import([lineOf(1, { amount: 2 })])).toMatchObject({ published: 0, unchanged: 1 });
  expect(await world.import([lineOf(1, { amount: 1 })])).toMatchObject({ published: 1 });
});

it('an interrupted import publishes the current batch, and then stops', async () => {
  const world = new World();
  const stop = new AbortController();
  const values = Array.from({ length: 1_200 }, (_, number) => lineOf(number));
  const onProgress = (line: string) => void (line.endsWith('published') && stop.abort());
  expect(await world.import(values, { onProgress, stop: stop.signal })).toMatchObject({ published: 500 });
  expect(world.log).toHaveLength(500);
});
