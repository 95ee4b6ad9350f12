/** Ports for reading the log without a group, publishing transactions, and managing the offsets of other groups. */
import { setTimeout as delay } from 'node:timers/promises';
import { toPartition } from '@playline/stores';
import type { Finding, OffsetDecision } from './partitions/offset-decision.ts';
import type { LogMark, StreamRecord } from './ports.ts';

export interface LogBounds {
  readonly partition: number;
  readonly start: number;
  /** Exclusive end of the stable records. Records of open transactions follow. */
  readonly end: number;
}

export interface LogSection {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
  readonly isWhole?: boolean;
}

/** Reads ranges of the log without joining a group or committing offsets. */
export interface LogReader {
  /**
   * Returns the bounds in partition order; empty if the topic does not exist. `readUncommitted` ignores transactions.
   */
  bounds(topic: string, options?: { readonly readUncommitted?: boolean }): Promise<LogBounds[]>;
  /** Returns a group's committed offsets by partition. Partitions without a commit are missing. */
  committed(groupId: string, topic: string): Promise<ReadonlyMap<number, number>>;
  /**
   * Reads records in order from `start` up to, but not including, `end`. Stops at the end of the log. Skips transaction
   * markers, aborted records, and records that retention deleted.
   * @param range.isWhole true if a partial result is not acceptable
   * @throws the broker's error; with `isWhole` also if records are missing
   */
  read(range: LogSection): AsyncGenerator<StreamRecord>;
  close(): Promise<void>;
}

/** A record to publish in a transaction. Without a `partition`, the key selects the partition. */
export interface TransactionRecord {
  readonly topic: string;
  readonly partition?: number;
  readonly key: Buffer | null;
  /** Null for a tombstone, which makes compaction remove the key. */
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, string | Buffer>>;
}

/** Publishes to several topics atomically. Opening a publisher fences the previous publisher with the same name. */
export interface AtomicPublisher {
  /**
   * Resolves when the transaction is committed. Readers see the records milliseconds later.
   * @throws Error if the records are not published or the outcome is unknown. Open another publisher and read the log
   */
  publish(records: readonly TransactionRecord[]): Promise<void>;
  close(): Promise<void>;
}

/** A partition with a group's commit and the state of its log. */
export interface GroupPartition {
  readonly topic: string;
  readonly partition: number;
  readonly committed: number;
  /** Exclusive end of the records that were read: the end in the commit's intent, otherwise the committed offset. */
  readonly readTo: number;
  /** The batch before `readTo`, from the commit. */
  readonly mark: LogMark | null;
  readonly start: number;
  readonly end: number;
  readonly finding: Finding;
  /** First offset at which a replaced log differs from the log that was read, from leader epochs; null if unknown. */
  readonly divergesAt: number | null;
  /** The last decision about this partition, whether applied or not. */
  readonly decision: OffsetDecision | null;
}

/** Reads the commits of groups and stores decisions about them, without joining a group. */
export interface GroupOffsets {
  /** Returns partitions by topic; empty if the group has no commits. @throws the broker's error */
  list(groupId: string): Promise<GroupPartition[]>;
  /** Stores a decision, which members of the group apply within seconds. */
  decide(groupId: string, at: { topic: string; partition: number }, decision: OffsetDecision): Promise<void>;
  /**
   * Commits a decision's offset for a group without members. For a group without a commit, `committed` is -1.
   * @returns false, without a commit, if the group has members
   * @throws Error if the group's commit has changed since the decision
   */
  move(groupId: string, at: { topic: string; partition: number }, decision: OffsetDecision): Promise<boolean>;
  close(): Promise<void>;
}

/** Transactions last at most ten seconds, and brokers abort expired transactions every ten seconds. */
const TRANSACTION_WAIT_MAX_MS = 40_000;
const POLL_INTERVAL_MS = 50;

/** A transaction on a topic did not end in time. Records after its start cannot be read. */
export class OpenTransactionFault extends Error {
  override readonly name = 'OpenTransactionFault';
}

/**
 * Returns the current bounds of a topic after all transactions before their ends have ended.
 * @param key waits only for the key's partition, and returns only its bounds
 * @returns an empty list if the topic does not exist
 * @throws OpenTransactionFault, or the broker's error
 */
export async function awaitStableBounds(log: Pick<LogReader, 'bounds'>, topic: string, key?: Buffer) {
  const all = await log.bounds(topic, { readUncommitted: true });
  const keyPartition = key === undefined ? null : toPartition(key, all.length);
  const ends = all.filter(({ partition }) => keyPartition === null || partition === keyPartition);
  const untilMs = performance.now() + TRANSACTION_WAIT_MAX_MS;
  for (;;) {
    const stable = new Map((await log.bounds(topic)).map(({ partition, end }) => [partition, end]));
    const open = ends.find(({ partition, end }) => (stable.get(partition) ?? 0) < end);
    if (open === undefined) return ends;
    if (performance.now() > untilMs)
      throw new OpenTransactionFault(
        `A transaction on ${topic}/${open.partition} has been open for more than ${TRANSACTION_WAIT_MAX_MS / 1_000} s. Retry later.`,
      );
    await delay(POLL_INTERVAL_MS);
  }
}

/** Error codes for a fenced publisher. The code depends on the request. */
const TAKEN_OVER = new Set(['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED', 'INVALID_PRODUCER_ID_MAPPING']);

/** Returns true if an atomic publisher failed because a later publisher with the same name was opened. */
export function isTakenOver(fault: unknown): boolean {
  for (let each = fault; each instanceof Error; each = each.cause)
    if ('type' in each && TAKEN_OVER.has(String(each.type))) return true;
  return false;
}
