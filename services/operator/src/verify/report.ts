import type { Drift } from '../derive/drift.ts';
import type { PersonsReport } from './persons.ts';

/** Results for one partition; numbers of offsets unless they say rows. */
export interface PartitionReport {
  readonly topic: string;
  readonly table: string;
  /** What readers query of the table. */
  readonly exact: string;
  /** The writer's consumer group. */
  readonly group: string;
  readonly partition: number;
  /** Checked offsets: from the log's first one to what the writer's group has committed. */
  readonly start: number;
  readonly committed: number;
  readonly end: number;
  /** Number of rows within the checked offsets. */
  rows: number;
  /** Records without a row and without an explanation. */
  lost: number;
  /** Messages with several raw rows at one offset, of which readers see one: they were read twice. No difference. */
  repeatedRecords: number;
  /** Rows beyond the first of one message at one offset, as readers see them. */
  doubledRows: number;
  /** Offsets with rows of different messages: from another log, or a table restored from a copy. */
  overlapping: number;
  /** Rows after the end of the log: the log was restored, or recreated. */
  futureRows: number;
  /** The group has committed more than the log contains. */
  committedBehindEnd: boolean;
  /** Offsets that may have rows of the lost log, by decisions of operators: checked by message, not by offset. */
  replaced: number;
  /** What happened to a log that is not the one that was read, without a decision yet. Checked up to the difference. */
  readonly standing: string | null;
  /** Records without a row that are explained: the same message at another offset, a dead letter, a fence. */
  readonly excused: Record<Excuse, number>;
  /** Offsets without a record: markers of transactions, and aborted records. */
  holes: number;
  /** Offsets that retention removed during the check. */
  expired: number;
  /** The first ranges or offsets of each kind of difference. */
  readonly examples: Example[];
}

export type Excuse = 'copy' | 'deadLetter' | 'fence';

export interface Example {
  readonly kind: 'lost' | 'doubled' | 'overlapping' | 'future' | 'behind' | 'replaced';
  readonly start: number;
  readonly end: number;
}

export interface VerifyReport {
  readonly partitions: readonly PartitionReport[];
  /** Persons in Redis and in the tables; null when Redis was not configured. */
  readonly persons: PersonsReport | null;
  /** Drift of every table derived from events. */
  readonly derived: readonly Drift[];
}

const differencesOf = (partition: PartitionReport) =>
  partition.lost +
  partition.doubledRows +
  partition.overlapping +
  partition.futureRows +
  Number(partition.committedBehindEnd) +
  Number(partition.standing !== null);

export function isClean({ partitions, persons, derived }: VerifyReport): boolean {
  return (
    partitions.every((partition) => differencesOf(partition) === 0) &&
    (persons?.different ?? 0) === 0 &&
    derived.every((drift) => !hasDrifted(drift))
  );
}

const hasDrifted = ({ missing, unfounded, fault }: Drift) => missing + unfounded > 0 || fault !== null;

export function toJson(report: VerifyReport): VerifyReport & { ok: boolean } {
  return { ok: isClean(report), ...report };
}

const COLUMNS: readonly [string, (partition: PartitionReport) => string | number][] = [
  ['table', ({ table }) => table],
  ['part', ({ partition }) => partition],
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
  lost: 'no row, and no copy, dead letter or fence explains it',
  doubled: 'more than one row of one message, also for readers',
  overlapping: 'rows of different messages at one offset',
  future: 'rows behind the end of the log',
  behind: 'committed behind the end of the log',
  replaced: 'not the log that was read; nothing is read until somebody decides: npm run offsets -- list',
};

/** A table, then one line for each example of a difference, then the verdict. */
export function toLines(report: VerifyReport): string[] {
  const head = COLUMNS.map(([name]) => name);
  const body = report.partitions.map((partition) => COLUMNS.map(([, read]) => String(read(partition))));
  const widths = head.map((name, index) =>
    body.map((cells) => cells[index]!.length).reduce((most, each) => Math.max(most, each), name.length),
  );
  const toLine = (cells: string[]) =>
    cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[index]!))).join('  ');
  const examples = report.partitions.flatMap((partition) =>
    partition.examples.flatMap((example) => toExampleLines(partition, example)),
  );
  const total = report.partitions.reduce((sum, partition) => sum + differencesOf(partition), 0);
  const waiting = report.partitions.reduce((sum, { committed, end }) => sum + Math.max(0, end - committed), 0);
  const waits = waiting === 0 ? [] : [`${waiting} records behind the commit were not judged: they are not written yet`];
  const verdict = total === 0 ? 'every record of the log is accounted for, once' : `${total} differences`;
  const lines = [toLine(head), ...body.map(toLine), ...examples, ...toRepeatLines(report), ...waits, verdict];
  return [...lines, ...toPersonLines(report), ...report.derived.filter(hasDrifted).map(toDriftLine)];
}

function toPersonLines({ persons }: VerifyReport): string[] {
  if (persons === null) return ['persons were not compared with Redis: set REDIS_URL'];
  const { compared, different, examples } = persons;
  if (different === 0) return [`${compared} linked identities have the same person in Redis and in identity_overrides`];
  const lines = examples.map(
    ({ environmentId, identityKey, inRedis, inClickHouse }) =>
      `person: ${environmentId} ${identityKey}: ${inRedis} in Redis, ${inClickHouse} in ClickHouse`,
  );
  return [...lines, `${different} identities have another person in Redis than in identity_overrides`];
}

const toDriftLine = ({ table, missing, unfounded, fault }: Drift) =>
  fault !== null
    ? `${table} could not be compared with events: ${fault}`
    : `${table} has drifted from events: ${missing} rows missing, ${unfounded} rows that no event says; mend it by: npm run derive`;

function toExampleLines(report: PartitionReport, { kind, start, end }: Example): string[] {
  const { topic, partition, group, examples } = report;
  const offsets = end - start === 1 ? String(start) : `${start} to ${end - 1}`;
  const line = `${kind}: ${topic}/${partition} ${offsets}: ${EXPLANATIONS[kind]}`;
  if (kind !== 'lost') return [line];
  // One command per partition with its first offset: a second move to a later one would skip what the first reads.
  const from = examples
    .filter((each) => each.kind === 'lost')
    .map((each) => each.start)
    .reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY);
  const command = `npm run offsets -- accept --group ${group} --topic ${topic} --partition ${partition} --from ${from} --yes`;
  return [line, `  read again, while the group's consumers are stopped, by: ${command}`];
}

/** What was read twice, by table. */
function toRepeatLines({ partitions }: VerifyReport): string[] {
  const counts = new Map<PartitionReport['table'], { exact: string; records: number }>();
  for (const { table, exact, repeatedRecords } of partitions)
    counts.set(table, { exact, records: (counts.get(table)?.records ?? 0) + repeatedRecords });
  return [...counts].flatMap(([table, { exact, records }]) =>
    records === 0
      ? []
      : [`${records} records stand in more than one raw row of ${table}, each once in ${exact}: they were read twice`],
  );
}
