import { isDeepStrictEqual } from 'node:util';
import type { ActivityConstants, Parsed } from '@playline/chain';
import { inBatches } from '@playline/stores';
import type { Line } from './lines.ts';
import { findForbidden, type ImportedRow, type ImportSubject } from './subjects.ts';

export interface ImportOptions<R, Row extends ImportedRow> {
  readonly subject: Pick<ImportSubject<R, Row>, 'toRow' | 'nameOf' | 'constantsOf'>;
  readonly parse: (line: unknown) => Parsed<R>;
  /** Returns the same lines each time. */
  readonly lines: () => AsyncIterable<Line>;
  /** Last versions in the tables of the things that these rows are about, by name. */
  readonly readStored: (rows: readonly Row[]) => Promise<ReadonlyMap<string, Row>>;
  /** Versions in the log that the tables may lack, in order, by name. */
  readonly tail: ReadonlyMap<string, readonly Row[]>;
  /** Resolves when the log has all of them, in this order. */
  readonly publish: (records: readonly R[]) => Promise<void>;
  /** Called for each refused line. */
  readonly onRefused: (number: number, faults: readonly string[]) => void;
  readonly onProgress: (line: string) => void;
  /** Aborted when the user interrupts the import: the batch under way is still published. */
  readonly stop: AbortSignal;
}

/** What was done with the lines. */
export interface Imported {
  lines: number;
  published: number;
  /** Lines whose content is stored already. */
  standing: number;
  /** Lines that a later line about the same thing replaces. */
  superseded: number;
  refused: number;
}

interface Planned {
  /** The line to publish; null when its content is stored already. */
  line: number | null;
  readonly constants: ActivityConstants | null;
}

/** Number of lines that are compared in one query of the tables, and published together. */
const BATCH_LINES = 500;

/**
 * Imports lines so that an import can be repeated. Of all lines about one thing the last valid one counts, and it is
 * published unless its content is stored already. So nothing is published twice, even if an earlier import was killed
 * at any moment: each thing gets one new version, or none.
 *
 * All lines are checked before the first is published; if they change meanwhile the import fails, since unchecked lines
 * would be published. Memory: some 200 bytes for each thing, plus what the writer has still to write.
 * @throws what the sources throw; what was published before stays
 */
export async function importLines<R, Row extends ImportedRow>(options: ImportOptions<R, Row>): Promise<Imported> {
  const result: Imported = { lines: 0, published: 0, standing: 0, superseded: 0, refused: 0 };
  const plan = await planLines(options, result);
  const toPublish = [...plan.values()].filter(({ line }) => line !== null).length;
  result.standing = plan.size - toPublish;
  result.superseded = result.lines - result.refused - plan.size;
  for await (const batch of inBatches(options.lines(), BATCH_LINES)) {
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
  const { subject, readStored: readStanding, stop, onProgress } = options;
  const plan = new Map<string, Planned>();
  const refuse = (number: number, faults: readonly string[]) => {
    result.refused++;
    options.onRefused(number, faults);
  };
  for await (const batch of inBatches(options.lines(), BATCH_LINES)) {
    if (stop.aborted) break;
    const read = batch.flatMap((line) => readLine(line, options, refuse));
    const stored = await readStanding(read.map(({ row }) => row));
    for (const { number, row } of read) {
      const name = subject.nameOf(row);
      const standing = findCurrent(stored.get(name), name, options);
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

/** The current version once the writer has written the whole log: it refuses changes of a constant. */
function findCurrent<R, Row extends ImportedRow>(
  stored: Row | undefined,
  name: string,
  { tail, subject }: ImportOptions<R, Row>,
): Row | undefined {
  return (tail.get(name) ?? []).reduce<Row | undefined>((standing, row) => {
    if (standing === undefined) return row;
    return findForbidden(subject.constantsOf(standing), subject.constantsOf(row)).length === 0 ? row : standing;
  }, stored);
}

/** Whether two versions have the same content; their place, time and author in the log do not count. */
function isSame<Row extends ImportedRow>(standing: Row | undefined, row: Row): boolean {
  return standing !== undefined && isDeepStrictEqual(contentOf(standing), contentOf(row));
}

function contentOf({ updatedAt, partition, offset, loggedAtMs, traceId, ...content }: ImportedRow): object {
  return content;
}
