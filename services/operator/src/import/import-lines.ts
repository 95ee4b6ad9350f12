import { isDeepStrictEqual } from 'node:util';
import type { ActivityConstants, Parsed } from '@playline/chain';
import type { Line } from './lines.ts';
import { findForbidden, type ImportedRow, type ImportSubject } from './subjects.ts';

export interface ImportOptions<R, Row extends ImportedRow> {
  readonly subject: Pick<ImportSubject<R, Row>, 'toRow' | 'nameOf' | 'constantsOf'>;
  readonly parse: (line: unknown) => Parsed<R>;
  /** The same lines each time. */
  readonly lines: () => AsyncIterable<Line>;
  /** Those of these things that the tables have, in their last version, by name. */
  readonly readStanding: (rows: readonly Row[]) => Promise<ReadonlyMap<string, Row>>;
  /** What the log holds and the tables may lack, in order, by name. */
  readonly tail: ReadonlyMap<string, readonly Row[]>;
  /** Resolves when the log has all of them, in this order. */
  readonly publish: (records: readonly R[]) => Promise<void>;
  /** Told of each line that is refused. */
  readonly onRefused: (number: number, faults: readonly string[]) => void;
  readonly onProgress: (line: string) => void;
  /** Aborted when the person asks for the end: what is under way is published. */
  readonly stop: AbortSignal;
}

/** What became of the lines. */
export interface Imported {
  lines: number;
  published: number;
  /** Content stands already. */
  standing: number;
  /** A later line is about the same thing. */
  superseded: number;
  refused: number;
}

interface Planned {
  /** The line to publish; null: what it says stands already. */
  line: number | null;
  readonly constants: ActivityConstants | null;
}

/** Names are told apart by one look at the tables for each so many lines, and published so many at a time. */
const BATCH_LINES = 500;

/**
 * Imports lines so that they can be imported again. Of all lines about one thing the last one that may be counts, and it
 * is published unless what stands says the same: so whatever was published before, by a command that was killed at any
 * moment, is not published again, and a thing of the import gets one new version, or none.
 *
 * All lines are looked at before the first is published; lines that change meanwhile end it, as what was looked at is no
 * longer what would be published. Memory: some 200 bytes for each thing that lines are about, and
 * what the writer has still to write.
 * @throws what the sources throw; what is published until then stands
 */
export async function importLines<R, Row extends ImportedRow>(options: ImportOptions<R, Row>): Promise<Imported> {
  const result: Imported = { lines: 0, published: 0, standing: 0, superseded: 0, refused: 0 };
  const plan = await planLines(options, result);
  const toPublish = [...plan.values()].filter(({ line }) => line !== null).length;
  result.standing = plan.size - toPublish;
  result.superseded = result.lines - result.refused - plan.size;
  for await (const batch of inBatches(options.lines())) {
    if (options.stop.aborted) break;
    const records = batch.flatMap(({ number, value }) => {
      const parsed = options.parse(value);
      if (!parsed.ok) return [];
      const planned = plan.get(options.subject.nameOf(options.subject.toRow(parsed.record)));
      return planned?.line === number ? [parsed.record] : [];
    });
    if (records.length === 0) continue;
    await options.publish(records);
    result.published += records.length;
    options.onProgress(`${result.published} of ${toPublish} published`);
  }
  if (result.published !== toPublish && !options.stop.aborted) throw new Error(CHANGED);
  return result;
}

const CHANGED = 'the lines have changed while they were imported: run it again, and what stands is not published twice';

interface ReadLine<R, Row> {
  readonly number: number;
  readonly record: R;
  readonly row: Row;
}

async function planLines<R, Row extends ImportedRow>(options: ImportOptions<R, Row>, result: Imported) {
  const { subject, readStanding, stop, onProgress } = options;
  const plan = new Map<string, Planned>();
  const refuse = (number: number, faults: readonly string[]) => {
    result.refused++;
    options.onRefused(number, faults);
  };
  for await (const batch of inBatches(options.lines())) {
    if (stop.aborted) break;
    const read = batch.flatMap((line) => readLine(line, options, refuse));
    const stored = await readStanding(read.map(({ row }) => row));
    for (const { number, row } of read) {
      const name = subject.nameOf(row);
      const standing = findStanding(stored.get(name), name, options);
      const constants = subject.constantsOf(row);
      const before = plan.get(name)?.constants ?? (standing === undefined ? null : subject.constantsOf(standing));
      const forbidden = findForbidden(before, constants);
      if (forbidden.length > 0)
        refuse(
          number,
          forbidden.map((field) => `${field} would be changed, and never may be`),
        );
      else plan.set(name, { line: isSame(standing, row) ? null : number, constants });
    }
    result.lines += batch.length;
    onProgress(`${result.lines} lines looked at, ${result.refused} refused`);
  }
  return plan;
}

function readLine<R, Row extends ImportedRow>(
  { number, value, fault }: Line,
  { parse, subject }: ImportOptions<R, Row>,
  refuse: (number: number, faults: readonly string[]) => void,
): ReadLine<R, Row>[] {
  const parsed = fault === null ? parse(value) : null;
  if (parsed?.ok) return [{ number, record: parsed.record, row: subject.toRow(parsed.record) }];
  refuse(
    number,
    parsed?.errors.map(({ field, message }) => (message.startsWith(field) ? message : `${field}: ${message}`)) ?? [
      fault!,
    ],
  );
  return [];
}

/** The version that stands when the writer has written all that the log holds: it refuses what changes a constant. */
function findStanding<R, Row extends ImportedRow>(
  stored: Row | undefined,
  name: string,
  { tail, subject }: ImportOptions<R, Row>,
): Row | undefined {
  return (tail.get(name) ?? []).reduce<Row | undefined>((standing, row) => {
    if (standing === undefined) return row;
    return findForbidden(subject.constantsOf(standing), subject.constantsOf(row)).length === 0 ? row : standing;
  }, stored);
}

/** Whether two versions say the same: where and when they were logged, and by whom, is not said to readers. */
function isSame<Row extends ImportedRow>(standing: Row | undefined, row: Row): boolean {
  return standing !== undefined && isDeepStrictEqual(contentOf(standing), contentOf(row));
}

function contentOf({ updatedAt, partition, offset, loggedAtMs, traceId, ...content }: ImportedRow): object {
  return content;
}

async function* inBatches(lines: AsyncIterable<Line>): AsyncGenerator<Line[]> {
  let batch: Line[] = [];
  for await (const line of lines) {
    batch.push(line);
    if (batch.length < BATCH_LINES) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
