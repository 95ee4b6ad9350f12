/** Ports that read the log without a group, publish transactions, and handle committed offsets of other groups. */
import { setTimeout as delay } from 'node:timers/promises';
import { toPartition } from './murmur2.ts';
import type { Finding, OffsetDecision } from './partitions/offset-decision.ts';
import type { LogMark, StreamRecord } from './ports.ts';

export interface LogBounds {
  readonly partition: number;
  readonly start: number;
  /** Exclusive end of the stable records; records of open transactions follow it. */
  readonly end: number;
}

export interface LogSection {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
  readonly isWhole?: boolean;
}

/** Reads given ranges of the log, without a group and without commits. */
export interface LogReader {
  /** In the order of partitions; empty when the topic does not exist. `readUncommitted` includes open transactions. */
  bounds(topic: string, options?: { readonly readUncommitted?: boolean }): Promise<LogBounds[]>;
  /** Committed offsets of a group by partition; partitions without one are absent. */
  committed(groupId: string, topic: string): Promise<ReadonlyMap<number, number>>;
  /**
   * Records from `start` to before `end`, in order; ends early at the end of the log. Skips transaction markers, aborted
   * records, and what retention deleted.
   * @param range.isWhole true when a partial result is not acceptable
   * @throws Error of the brokers; with `isWhole` also when records are missing
   */
  read(range: LogSection): AsyncGenerator<StreamRecord>;
  close(): Promise<void>;
}

/** A record to be published in a transaction. Without a partition its key decides. */
export interface TransactionRecord {
  readonly topic: string;
  readonly partition?: number;
  readonly key: Buffer | null;
  /** Null is a tombstone: compaction removes the key. */
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, string | Buffer>>;
}

/** Publishes to several topics atomically. Opening a publisher fences the previous one of the same name. */
export interface AtomicPublisher {
  /**
   * Resolves when the transaction is committed; readers see the records milliseconds later.
   * @throws Error when the records are not published, or the outcome is unknown: read the log before a retry
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
  /** First offset at which a replaced log differs from the one that was read, by leader epochs; null when unknown. */
  readonly divergesAt: number | null;
  /** The last decision about this partition, applied or not. */
  readonly decision: OffsetDecision | null;
}

/** Reads commits of groups and stores decisions about them, without joining any group. */
export interface GroupOffsets {
  /** By topic and partition; empty when the group has committed nothing. @throws Error of the brokers */
  list(groupId: string): Promise<GroupPartition[]>;
  /** Stores a decision, which members of the group apply within seconds. */
  decide(groupId: string, at: { topic: string; partition: number }, decision: OffsetDecision): Promise<void>;
  /**
   * Commits the offset of a decision for a group without members.
   * @returns false, without a commit, when the group has members
   * @throws Error when the decision is about another commit
   */
  move(groupId: string, at: { topic: string; partition: number }, decision: OffsetDecision): Promise<boolean>;
  close(): Promise<void>;
}

/** Transactions last ten seconds at most, and brokers abort older ones every ten. */
const TRANSACTION_WAIT_MAX_MS = 40_000;
const POLL_INTERVAL_MS = 50;

/** A transaction of a topic did not end in time. Records after its start cannot be read. */
export class OpenTransactionFault extends Error {
  override readonly name = 'OpenTransactionFault';
}

/**
 * The current bounds of a topic, once no transaction before these ends is open.
 * @param key waits for its partition only, and returns only that one
 * @returns an empty list when the topic does not exist
 * @throws OpenTransactionFault, or Error of the brokers
 */
export async function awaitStableBounds(log: Pick<LogReader, 'bounds'>, topic: string, key?: Buffer) {
  const all = await log.bounds(topic, { readUncommitted: true });
  const only = key === undefined ? null : toPartition(key, all.length);
  const ends = all.filter(({ partition }) => only === null || partition === only);
  const untilMs = performance.now() + TRANSACTION_WAIT_MAX_MS;
  for (;;) {
    const stable = new Map((await log.bounds(topic)).map(({ partition, end }) => [partition, end]));
    const open = ends.find(({ partition, end }) => (stable.get(partition) ?? 0) < end);
    if (open === undefined) return ends;
    if (performance.now() > untilMs)
      throw new OpenTransactionFault(
        `A transaction on ${topic}/${open.partition} has been open for more than ${TRANSACTION_WAIT_MAX_MS / 1_000} s. Wait until it ends.`,
      );
    await delay(POLL_INTERVAL_MS);
  }
}

/** Error codes of a fenced publisher; which one depends on the request. */
const TAKEN_OVER = new Set(['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED', 'INVALID_PRODUCER_ID_MAPPING']);

/** Whether an atomic publisher failed because a later one of its name was opened. */
export function isTakenOver(fault: unknown): boolean {
  for (let each = fault; each instanceof Error; each = each.cause)
    if ('type' in each && TAKEN_OVER.has(String(each.type))) return true;
  return false;
}
