import { setTimeout as delay } from 'node:timers/promises';
import { toPartition } from './murmur2.ts';
import type { Finding, OffsetDecision } from './partitions/offset-decision.ts';
import type { LogMark, StreamRecord } from './ports.ts';

/** Present bounds of a partition: `start` inclusive, `end` exclusive. Some offsets between may have no record. */
export interface LogBounds {
  readonly partition: number;
  readonly start: number;
  /** Exclusive end of the decided records; records of open transactions come after it. */
  readonly end: number;
}

/** A range of one partition. */
export interface LogSection {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
  readonly isWhole?: boolean;
}

/** Reads given ranges of the log, without a group and without commits. */
export interface LogReader {
  /**
   * In the order of partitions; empty when the topic does not exist.
   * @param options.readUncommitted the end of everything that is stored, records of open transactions included
   */
  bounds(topic: string, options?: { readonly readUncommitted?: boolean }): Promise<LogBounds[]>;
  /** Committed offsets of a group by partition; partitions without one are absent. */
  committed(groupId: string, topic: string): Promise<ReadonlyMap<number, number>>;
  /**
   * Records of one partition from `start` to before `end`, in order; ends early at the end of the log. Skips offsets
   * without a record: transaction markers, aborted records, and what retention deleted.
   * @param range.isWhole true when a partial result is not acceptable
   * @throws Error of the brokers; with `isWhole` also when they return less than was asked for
   */
  read(range: LogSection): AsyncGenerator<StreamRecord>;
  close(): Promise<void>;
}

/** A record to be published, with an optional partition. Without one its key decides. */
export interface TransactionRecord {
  readonly topic: string;
  readonly partition?: number;
  readonly key: Buffer | null;
  /** Null is a tombstone: compaction removes the key. */
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, string | Buffer>>;
}

/**
 * Publishes records to several topics in one step: consumers see all of them or none. Opening a publisher of the same
 * name takes over: unfinished work of the previous one is aborted, and nothing of it can arrive later.
 */
export interface AtomicPublisher {
  /**
   * Resolves when it is decided that the records are published; readers see them milliseconds later.
   * @throws Error when the records are not published, or when that is unknown: look into the log before trying again
   */
  publish(records: readonly TransactionRecord[]): Promise<void>;
  close(): Promise<void>;
}

/** A partition that a group has committed, and the state of its log. */
export interface GroupPartition {
  readonly topic: string;
  readonly partition: number;
  readonly committed: number;
  /** Exclusive end of everything that was read: of the named block, or else the committed offset. */
  readonly readTo: number;
  /** The batch before `readTo`, as named in the commit. */
  readonly mark: LogMark | null;
  readonly start: number;
  readonly end: number;
  readonly finding: Finding;
  /**
   * First offset at which a replaced log differs from the one that was read: records from here on were never read.
   * Found by leader epochs; null when that is not possible.
   */
  readonly divergesAt: number | null;
  /** The last decision about this partition, whether it was carried out yet or not. */
  readonly decision: OffsetDecision | null;
}

/** Reads commits of groups and stores decisions about them, without joining any group. */
export interface GroupOffsets {
  /** Partitions of a group by topic and partition; empty when it has committed nothing. @throws Error of the brokers */
  list(groupId: string): Promise<GroupPartition[]>;
  /** Stores a decision for the members of a group. They carry it out within seconds. */
  decide(groupId: string, at: { topic: string; partition: number }, decision: OffsetDecision): Promise<void>;
  /**
   * Commits the new offset for a group without members, as its members would after a decision.
   * @returns false, and nothing is done, when the group has members: brokers then accept commits only from them
   * @throws Error when the group's commit is not the one that the decision answers
   */
  move(groupId: string, at: { topic: string; partition: number }, decision: OffsetDecision): Promise<boolean>;
  close(): Promise<void>;
}

/** Transactions last ten seconds at most, and brokers look for older ones every ten. */
const TRANSACTION_WAIT_MAX_MS = 40_000;
const POLL_INTERVAL_MS = 50;

/** A transaction of a topic did not end in time. Records behind its start cannot be read. */
export class OpenTransactionFault extends Error {
  override readonly name = 'OpenTransactionFault';
}

/**
 * The bounds of what a topic holds now, once no transaction in front of these ends is open: whoever reads up to them
 * misses nothing.
 * @param key only its partition is waited for and returned; without a key all of them are
 * @returns an empty list when the topic does not exist
 * @throws OpenTransactionFault, or Error of the brokers
 */
export async function awaitStableBounds(
  log: Pick<LogReader, 'bounds'>,
  topic: string,
  key?: Buffer,
): Promise<readonly LogBounds[]> {
  const all = await log.bounds(topic, { readUncommitted: true });
  const only = key === undefined ? null : toPartition(key, all.length);
  const ends = all.filter(({ partition }) => only === null || partition === only);
  const untilMs = performance.now() + TRANSACTION_WAIT_MAX_MS;
  for (;;) {
    const decided = new Map((await log.bounds(topic)).map(({ partition, end }) => [partition, end]));
    const open = ends.find(({ partition, end }) => (decided.get(partition) ?? 0) < end);
    if (open === undefined) return ends;
    if (performance.now() > untilMs)
      throw new OpenTransactionFault(
        `a transaction on ${topic}/${open.partition} has been open for more than ${TRANSACTION_WAIT_MAX_MS / 1_000} s`,
      );
    await delay(POLL_INTERVAL_MS);
  }
}

/** Codes by which brokers refuse a publisher whose name another one has taken over; which one depends on the request. */
const TAKEN_OVER = new Set(['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED', 'INVALID_PRODUCER_ID_MAPPING']);

/** Whether an atomic publisher failed because a later one of its name has taken over. Clients may put the code into a cause. */
export function isTakenOver(fault: unknown): boolean {
  for (let each = fault; each instanceof Error; each = each.cause)
    if ('type' in each && TAKEN_OVER.has(String(each.type))) return true;
  return false;
}
