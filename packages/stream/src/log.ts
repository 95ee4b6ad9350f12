import type { Finding } from './partitions/log-finding.ts';
import type { OffsetDecision } from './partitions/offset-decision.ts';
import type { LogMark, StreamRecord } from './ports.ts';

/** What a partition holds now: offsets from `start` to before `end`, not all of which need to be records. */
export interface LogBounds {
  readonly partition: number;
  readonly start: number;
  /** End of what is decided: records of a transaction that is still open stand behind it. */
  readonly end: number;
}

/** What is read of a partition. */
export interface LogSection {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
  readonly isWhole?: boolean;
}

/** Reads the log at chosen places, as part of no group and without leaving a trace. */
export interface LogReader {
  /**
   * In the order of partitions; empty when the topic does not exist.
   * @param options.undecided the end of everything that is stored, records of open transactions included
   */
  bounds(topic: string, options?: { readonly undecided?: boolean }): Promise<LogBounds[]>;
  /** Committed offsets of a group by partition; partitions without one are absent. */
  committed(groupId: string, topic: string): Promise<ReadonlyMap<number, number>>;
  /**
   * Records of one partition from `start` to before `end`, in order; ends early at the end of the log. Offsets that hold
   * no record (markers of transactions, records of aborted ones, what retention took) are passed over.
   * @param range.isWhole for whoever may not take a part for all of it
   * @throws Error of the brokers; with `isWhole` also when they show less than was asked for
   */
  read(range: LogSection): AsyncGenerator<StreamRecord>;
  close(): Promise<void>;
}

/** A record on its way, with a partition where it matters; without one its key chooses. */
export interface PlacedRecord {
  readonly topic: string;
  readonly partition?: number;
  readonly key: Buffer | null;
  /** Null: whoever compacts the topic forgets the key. */
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, string | Buffer>>;
}

/**
 * Publishes records to several topics in one step: consumers see all of them or none. Whoever opens a publisher of the
 * same name takes over: what the one before had not finished is undone, and nothing of it can arrive later.
 */
export interface AtomicPublisher {
  /**
   * Resolves when it is decided that the records are published; readers see them milliseconds later.
   * @throws Error when the records are not published, or when nobody knows: look into the log before trying again
   */
  publish(records: readonly PlacedRecord[]): Promise<void>;
  close(): Promise<void>;
}

/** One partition that a group has committed, and what its log says of that. */
export interface GroupPartition {
  readonly topic: string;
  readonly partition: number;
  readonly committed: number;
  /** Exclusive end of everything that was read: of the block under way, else what is committed. */
  readonly readTo: number;
  /** The batch in front of `readTo`, as the commit names it. */
  readonly mark: LogMark | null;
  readonly start: number;
  readonly end: number;
  readonly finding: Finding;
  /**
   * Where a log that was replaced parts from the one that was read: everything from here on was never read. Leaders
   * tell it by their epochs; null when they do not.
   */
  readonly partsAt: number | null;
  /** What was decided last about this partition, whether or not it is followed already. */
  readonly decision: OffsetDecision | null;
}

/** What groups have committed, and decisions about it; as a member of none. */
export interface GroupOffsets {
  /** Partitions of a group by topic and partition; empty when it has committed nothing. @throws Error of the brokers */
  list(groupId: string): Promise<GroupPartition[]>;
  /** Leaves a decision for the group's members, who follow it within seconds. */
  decide(groupId: string, at: { topic: string; partition: number }, decision: OffsetDecision): Promise<void>;
  /**
   * Commits where a group without members goes on, as its members would after a decision.
   * @returns false when the group has members: brokers take its commits from them alone, and nothing was done
   * @throws Error when the group has committed something else than what the decision answers
   */
  move(groupId: string, at: { topic: string; partition: number }, decision: OffsetDecision): Promise<boolean>;
  close(): Promise<void>;
}
