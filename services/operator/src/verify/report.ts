import type { Drift } from '../derive/drift.ts';
import type { PersonsReport } from './persons.ts';

/** Results for one partition. Numbers count offsets unless stated otherwise. */
export interface PartitionReport {
  readonly topic: string;
  readonly table: string;
  /** The table or view that returns deduplicated rows. */
  readonly exact: string;
  readonly group: string;
  readonly partition: number;
  /** First checked offset; `committed` is the exclusive end of the check. */
  readonly start: number;
  readonly committed: number;
  readonly end: number;
  /** Number of rows at the checked offsets. */
  rows: number;
  /** Records without a row and without a known reason. */
  lost: number;
  /** Messages with several raw rows at one offset, of which queries return one. Not a difference. */
  repeatedRecords: number;
  /** Extra rows per message and offset that queries return. */
  doubledRows: number;
  /** Offsets with rows of different messages. */
  overlapping: number;
  /** Number of rows beyond the end of the log. */
  futureRows: number;
  /** Whether the committed offset is beyond the end of the log. */
  committedBehindEnd: boolean;
  /** Offsets at which rows from a lost log may be stored, according to operator decisions. */
  replaced: number;
  /** Why the partition needs a decision, or null. */
  readonly undecided: string | null;
  /** Records without a row, by the reason for the missing row. */
  readonly excused: Record<'copy' | 'deadLetter' | 'fence', number>;
  /** Offsets without a record, such as transaction markers. */
  holes: number;
  /** Offsets that retention removed during the check. */
  expired: number;
  /** The first ranges with differences. */
  readonly examples: Example[];
}

export interface Example {
  readonly kind: 'lost' | 'doubled' | 'overlapping' | 'future' | 'beyond-end' | 'replaced';
  readonly start: number;
  readonly end: number;
}

export interface VerifyReport {
  readonly partitions: readonly PartitionReport[];
  /** Null if no Redis address is configured. */
  readonly persons: PersonsReport | null;
  readonly derived: readonly Drift[];
  /** Differences between the nodes of a cluster. */
  readonly nodes?: readonly string[];
}

const differencesOf = (partition: PartitionReport) =>
  partition.lost +
  partition.doubledRows +
  partition.overlapping +
  partition.futureRows +
  Number(partition.committedBehindEnd) +
  Number(partition.undecided !== null);

export function isClean({ partitions, persons, derived, nodes = [] }: VerifyReport): boolean {
  return (
    partitions.every((partition) => differencesOf(partition) === 0) &&
    (persons?.different ?? 0) === 0 &&
    derived.every((drift) => !hasDrifted(drift)) &&
    nodes.length === 0
  );
}

const hasDrifted = ({ missing, unfounded, fault }: Drift) => missing + unfounded > 0 || fault !== null;

export function toJson({ partitions, ...report }: VerifyReport): object {
  const shown = partitions.map(({ undecided: standing, ...partition }) => ({ ...partition, standing }));
  return { ok: isClean({ partitions, ...report }), partitions: shown, ...report };
}

const COLUMNS: readonly [string, (partition: PartitionReport) => string | number][] = [
  ['table', ({ table }) => table],
  ['partition', ({ partition }) => partition],
  ['from', ({ start }) => start],
  ['committed', ({ committed }) => committed],
  ['end', ({ end }) => end],
  ['rows', ({ rows }) => rows],
  ['copies', ({ excused }) => excused.copy],
  ['dead', ({ excused }) => excused.deadLetter],
  ['fenced', ({ excused }) => excused.fence],
  ['holes', ({ holes }) => holes],
  ['replaced', ({ replaced }) => replaced],
  ['repeats', ({ repeatedRecords }) => repeatedRecords],
  ['LOST', ({ lost }) => lost],
  ['DOUBLED', ({ doubledRows }) => doubledRows],
  ['OVERLAP', ({ overlapping }) => overlapping],
  ['FUTURE', ({ futureRows }) => futureRows],
];

const EXPLANATIONS: Record<Example['kind'], string> = {
  lost: 'the records have no row, and no copy, dead letter or fence explains why',
  doubled: 'queries return more than one row per message',
  overlapping: 'rows of different messages exist at the same offset',
  future: 'rows exist beyond the end of the log',
  'beyond-end': 'the committed offset is beyond the end of the log',
  replaced: 'the log was replaced, and the partition is paused until an operator decides (npm run offsets -- list)',
};

/** Formats the report: a table, examples of differences, and a summary. */
export function toLines(report: VerifyReport): string[] {
  const body = report.partitions.map((partition) => COLUMNS.map(([, read]) => String(read(partition))));
  const header = COLUMNS.map(([name]) => name);
  const widths = header.map((name, column) =>
    body.reduce((most, cells) => Math.max(most, cells[column]!.length), name.length),
  );
  const toLine = (cells: string[]) =>
    cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('  ');
  const examples = report.partitions.flatMap((partition) =>
    partition.examples.flatMap((example) => toExampleLines(partition, example)),
  );
  const total = report.partitions.reduce((sum, partition) => sum + differencesOf(partition), 0);
  const waiting = report.partitions.reduce((sum, { committed, end }) => sum + Math.max(0, end - committed), 0);
  const summary =
    total === 0 ? 'no differences: all log records are stored exactly once or accounted for' : `differences: ${total}`;
  const lines = [toLine(header), ...body.map(toLine), ...examples, ...toRepeatLines(report)];
  if (waiting > 0) lines.push(`records that were not checked because they are not stored yet: ${waiting}`);
  const drifts = report.derived.filter(hasDrifted).map(toDriftLine);
  return [...lines, summary, ...toPersonLines(report), ...drifts, ...(report.nodes ?? [])];
}

function toPersonLines({ persons }: VerifyReport): string[] {
  if (persons === null) return ['persons in Redis were not compared: set REDIS_URL'];
  const { compared, different, examples } = persons;
  if (different === 0) return [`${compared} linked identities have the same person in Redis and in identity_overrides`];
  const lines = examples.map(
    ({ environmentId, identityKey, inRedis, inClickHouse }) =>
      `person: ${environmentId} ${identityKey}: ${inRedis} in Redis, ${inClickHouse} in ClickHouse`,
  );
  return [...lines, `${different} identities have different persons in Redis and in identity_overrides`];
}

const toDriftLine = ({ table, missing, unfounded, fault }: Drift) =>
  fault !== null
    ? `${table} could not be compared with events: ${fault}`
    : `${table} differs from events (rows missing: ${missing}, rows without an event: ${unfounded}). To repair the table, run npm run derive`;

function toExampleLines(report: PartitionReport, { kind, start, end }: Example): string[] {
  const { topic, partition, group, examples } = report;
  const offsets = end - start === 1 ? String(start) : `${start} to ${end - 1}`;
  const line = `${kind}: ${topic}/${partition} ${offsets}: ${EXPLANATIONS[kind]}`;
  if (kind !== 'lost') return [line];
  // Starts at the first lost offset of the partition, because a later start would skip earlier lost records.
  const from = examples.reduce((least, each) => (each.kind === 'lost' ? Math.min(least, each.start) : least), start);
  const command = `npm run offsets -- accept --group ${group} --topic ${topic} --partition ${partition} --from ${from} --yes`;
  return [line, `  to read these records again, stop the group's consumers and run: ${command}`];
}

function toRepeatLines({ partitions }: VerifyReport): string[] {
  const counts = new Map<PartitionReport['table'], { exact: string; records: number }>();
  for (const { table, exact, repeatedRecords } of partitions)
    counts.set(table, { exact, records: (counts.get(table)?.records ?? 0) + repeatedRecords });
  return [...counts].flatMap(([table, { exact, records }]) =>
    records === 0
      ? []
      : [`records that were read twice: ${records}, with more than one raw row in ${table} but one row in ${exact}`],
  );
}
