/** Compares the records of a topic with the rows of its table. */
import type { IsFenced } from '@playline/events';
import type { LogBounds, LogReader, StreamRecord } from '@playline/stream';
import type { DeadOffsets, Flow, LoggedFact } from './flows.ts';
import {
  addOffset,
  type BucketCount,
  createRangeCursor,
  findSuspectRanges,
  intersect,
  joinRanges,
  type OffsetRange,
  type ReplacedLog,
  type SuspectRange,
  sizeOf,
  subtract,
} from './ranges.ts';
import type { PartitionReport } from './report.ts';
import type { PartitionRange, StoredRows } from './stored-rows.ts';

/** Decodes a record; returns null for an unreadable value. */
export type ReadFact = (flow: Flow, record: StreamRecord) => Promise<LoggedFact | null>;

export interface VerifyFlowOptions {
  readonly log: LogReader;
  readonly stored: StoredRows;
  readonly readFact: ReadFact;
  /** Called after the rows are read, like `readIsFenced`, so that the reasons for missing rows are complete. */
  readonly readDeadOffsets: () => Promise<DeadOffsets>;
  readonly readIsFenced: () => Promise<IsFenced>;
  /** Replaced logs, by `topic/partition`. */
  readonly replaced: ReadonlyMap<string, ReplacedLog>;
  readonly topicPrefix: string;
  readonly group: string;
  readonly bucketSize: number;
  readonly onProgress: (line: string) => void;
}

/** Limits the memory for bitmaps and ranges to a few megabytes. */
const BUCKETS_MAX = 16;
/** A read fetches about a thousand adjacent records. */
const JOIN_DISTANCE = 1_000;
/** Records per query for copies. */
const FACTS_MAX = 5_000;
const EXAMPLES_MAX = 20;

/** A record without a row, whose absence is not explained yet. */
interface Absent {
  readonly offset: number;
  readonly fact: LoggedFact | null;
}

/** Compares a topic with its table. @throws Error of a store */
export async function verifyFlow(flow: Flow, parts: VerifyFlowOptions): Promise<PartitionReport[]> {
  const { log, stored, topicPrefix, group } = parts;
  const topic = topicPrefix + flow.topic;
  // Committed offsets are read before the rows, because committed records must have rows.
  const committed = await log.committed(group, topic);
  const bounds = await log.bounds(topic);
  const reports = bounds.map((each) => {
    const undecided = parts.replaced.get(`${topic}/${each.partition}`)?.undecided ?? null;
    return createReport(flow, topic, { group, each, committed: committed.get(each.partition), undecided });
  });
  let reasons: AbsenceReasons | null = null;
  const readReasons = async () => {
    reasons ??= { dead: await parts.readDeadOffsets(), isFenced: await parts.readIsFenced() };
    return reasons;
  };
  // Ranges of one partition can share buckets, so ranges are queried separately. Usually there is only one range.
  const ranges = reports.map((report) => ({ report, rest: subtract(checkedRange(report), replacedIn(report, parts)) }));
  for (let round = 0; ranges.some(({ rest }) => rest.length > round); round++) {
    const checked = ranges.flatMap(({ report, rest }) => (rest[round] ? [{ report, range: rest[round] }] : []));
    const counts = await readCounts(flow, checked, parts);
    for (const { report, range } of checked) {
      const buckets = counts.get(report.partition) ?? new Map();
      for (const { rows } of buckets.values()) report.rows += rows;
      const suspects = findSuspectRanges(range, buckets, { bucketSize: parts.bucketSize, bucketsMax: BUCKETS_MAX });
      if (suspects.length > 0) await inspect({ flow, reasons: await readReasons(), parts, report }, suspects);
    }
  }
  for (const report of reports)
    for (const range of intersect(checkedRange(report), replacedIn(report, parts)))
      await checkReplaced({ flow, reasons: await readReasons(), parts, report }, range);
  const lastOffsets = await stored.lastOffsets(flow);
  return await addFuture(flow, { reports, lastOffsets, ends: await log.bounds(topic) }, parts);
}

const checkedRange = ({ start, committed }: PartitionReport): OffsetRange => ({ start, end: committed });

const replacedIn = ({ topic, partition }: { topic: string; partition: number }, { replaced }: VerifyFlowOptions) =>
  replaced.get(`${topic}/${partition}`)?.ranges ?? [];

/** Checks offsets of a replaced log by content, or by offset if the table's sorting key contains the offset. */
async function checkReplaced(check: PartitionCheck, range: OffsetRange): Promise<void> {
  const { flow, parts, report } = check;
  const { partition } = report;
  parts.onProgress(
    `${report.topic}/${partition}: checking offsets ${range.start} to ${range.end - 1} of a replaced log by content`,
  );
  report.replaced += sizeOf(range);
  const copiesBefore = report.excused.copy;
  const isKeyedByOffset = flow.copyRules.length === 0;
  await explainGaps(check, isKeyedByOffset ? await parts.stored.missing(flow, { partition, ...range }) : [range]);
  report.excused.copy = copiesBefore;
}

function createReport(
  flow: Flow,
  topic: string,
  parts: { group: string; each: LogBounds; committed: number | undefined; undecided?: ReplacedLog['undecided'] },
): PartitionReport {
  const { group, each, committed, undecided = null } = parts;
  const { partition, start, end } = each;
  const isBeyondEnd = committed !== undefined && committed > end;
  // Records beyond the point of divergence are not read until an operator decides.
  const readTo = Math.min(committed ?? start, undecided?.divergesAt ?? end, end);
  return {
    topic,
    table: flow.table,
    exact: flow.exact,
    group,
    partition,
    start,
    committed: Math.max(start, readTo),
    end,
    rows: 0,
    lost: 0,
    repeatedRecords: 0,
    doubledRows: 0,
    overlapping: 0,
    futureRows: 0,
    committedBehindEnd: isBeyondEnd,
    replaced: 0,
    undecided: undecided?.finding ?? null,
    excused: { copy: 0, deadLetter: 0, fence: 0 },
    holes: 0,
    expired: 0,
    examples: [
      ...(isBeyondEnd ? [{ kind: 'beyond-end' as const, start: end, end: committed }] : []),
      ...(undecided === null ? [] : [{ kind: 'replaced' as const, start: undecided.divergesAt, end }]),
    ],
  };
}

async function readCounts(
  flow: Flow,
  checked: readonly { report: PartitionReport; range: OffsetRange }[],
  { stored }: VerifyFlowOptions,
) {
  const counts = new Map<number, Map<number, BucketCount>>();
  const ranges = checked.map(({ report: { partition }, range }) => ({ partition, ...range }));
  for await (const count of stored.counts(flow, ranges)) {
    const ofPartition = counts.get(count.partition) ?? new Map<number, BucketCount>();
    counts.set(count.partition, ofPartition.set(count.index, count));
  }
  return counts;
}

interface AbsenceReasons {
  readonly dead: DeadOffsets;
  readonly isFenced: IsFenced;
}

interface PartitionCheck {
  readonly flow: Flow;
  readonly reasons: AbsenceReasons;
  readonly parts: VerifyFlowOptions;
  readonly report: PartitionReport;
}

async function inspect(check: PartitionCheck, suspects: readonly SuspectRange[]): Promise<void> {
  const { flow, parts, report } = check;
  const { topic, partition } = report;
  for (const suspect of suspects) {
    const range = { partition, start: suspect.start, end: suspect.end };
    parts.onProgress(`${topic}/${partition}: checking offsets ${suspect.start} to ${suspect.end - 1}`);
    if (suspect.hasRepeats) await countRepeats(check, range);
    if (suspect.hasGaps) await explainGaps(check, await parts.stored.missing(flow, range));
  }
}

async function countRepeats({ flow, parts, report }: PartitionCheck, range: PartitionRange): Promise<void> {
  const repeated = await parts.stored.repeated(flow, range);
  report.repeatedRecords += repeated.repeatedRecords;
  report.doubledRows += repeated.doubledRows;
  report.overlapping += repeated.overlappingOffsets;
  for (const { offset, kind } of repeated.examples)
    if (report.examples.length < EXAMPLES_MAX) report.examples.push({ kind, start: offset, end: offset + 1 });
}

/** Reads the records whose rows are missing, and determines the reason for each missing row. */
async function explainGaps(check: PartitionCheck, gaps: readonly OffsetRange[]): Promise<void> {
  const { flow, reasons, parts, report } = check;
  const { topic, partition } = report;
  const isMissing = createRangeCursor(gaps);
  const lost: { start: number; end: number }[] = [];
  let absent: Absent[] = [];
  let records = 0;
  const explain = async () => {
    for (const offset of await findLost(flow, absent, check)) {
      report.lost++;
      addOffset(lost, offset, EXAMPLES_MAX);
    }
    absent = [];
  };
  for (const range of joinRanges(gaps, JOIN_DISTANCE))
    for await (const record of parts.log.read({ topic, partition, ...range })) {
      if (!isMissing(record.offset)) continue;
      records++;
      if (reasons.dead.has(topic, partition, record.offset)) report.excused.deadLetter++;
      else absent.push({ offset: record.offset, fact: await parts.readFact(flow, record) });
      if (absent.length >= FACTS_MAX) await explain();
    }
  await explain();
  const examples = lost.slice(0, Math.max(0, EXAMPLES_MAX - report.examples.length));
  for (const example of examples) report.examples.push({ kind: 'lost', ...example });
  await countHoles(check, { gaps, records });
}

/** Returns the offsets of records whose missing rows are explained by neither a copy nor a fence. */
async function findLost(flow: Flow, absent: readonly Absent[], { reasons, parts, report }: PartitionCheck) {
  let unexplained = absent.filter(({ fact }) => fact?.isFencedOut(reasons.isFenced) !== true);
  report.excused.fence += absent.length - unexplained.length;
  for (const [index, rule] of flow.copyRules.entries()) {
    const readable = unexplained.filter(({ fact }) => fact !== null);
    const lists = readable.map(({ fact }) => fact!.copies[index]!);
    const found = await parts.stored.findCopies(flow, rule, lists);
    const copied = new Set(readable.filter((_, position) => found.has(position)).map(({ offset }) => offset));
    report.excused.copy += copied.size;
    unexplained = unexplained.filter(({ offset }) => !copied.has(offset));
  }
  return unexplained.map(({ offset }) => offset);
}

/** Counts offsets without a record as holes, unless retention has removed the record during the check. */
async function countHoles(
  { parts, report }: PartitionCheck,
  { gaps, records }: { gaps: readonly OffsetRange[]; records: number },
): Promise<void> {
  const empty = gaps.reduce((sum, gap) => sum + sizeOf(gap), 0) - records;
  if (empty === 0) return;
  const current = (await parts.log.bounds(report.topic)).find(({ partition }) => partition === report.partition);
  const start = current?.start ?? report.end;
  const expired = gaps.reduce((sum, gap) => sum + Math.max(0, Math.min(gap.end, start) - gap.start), 0);
  report.expired += Math.min(empty, expired);
  report.holes += empty - Math.min(empty, expired);
}

/** Reports rows beyond the end of the log, except rows from a lost log. */
async function addFuture(
  flow: Flow,
  found: { reports: PartitionReport[]; lastOffsets: ReadonlyMap<number, number>; ends: readonly LogBounds[] },
  parts: VerifyFlowOptions,
): Promise<PartitionReport[]> {
  const { reports, lastOffsets, ends } = found;
  const topic = parts.topicPrefix + flow.topic;
  for (const [partition, last] of lastOffsets) {
    const bounds = ends.find((each) => each.partition === partition) ?? { partition, start: 0, end: 0 };
    const from = replacedIn({ topic, partition }, parts)
      .map(({ end }) => end)
      .reduce((most, each) => Math.max(most, each), bounds.end);
    if (last < from) continue;
    let report = reports.find((each) => each.partition === partition);
    if (report === undefined) {
      report = createReport(flow, topic, { group: parts.group, each: bounds, committed: undefined });
      reports.push(report);
    }
    report.futureRows = await parts.stored.countFrom(flow, { partition, offset: from });
    report.examples.push({ kind: 'future', start: from, end: last + 1 });
  }
  return reports;
}
