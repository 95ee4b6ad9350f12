import type { LogMark } from './log-mark.ts';

/** A commit was refused because the partition belongs to someone else now: whatever it was for must be dropped. */
export class Fenced extends Error {
  override readonly name = 'Fenced';
}

/**
 * The topic that was examined is gone; another one may bear its name. Whatever is known of the log is about the old one:
 * it must be examined anew before anything is read.
 */
export class LogGone extends Error {
  override readonly name = 'LogGone';
  readonly topic: string;
  readonly partition: number;

  constructor({ topic, partition }: { topic: string; partition: number }) {
    super(`${topic}/${partition}: the topic that was examined is gone`);
    this.topic = topic;
    this.partition = partition;
  }
}

/** One partition as assigned to us, for as long as this assignment lasts. */
export interface LogPartition {
  readonly topic: string;
  readonly partition: number;
  /** The group's committed offset, or the first offset of the log when it has committed none. */
  readonly committed: number;
  /** What stands beside it: null when the group has committed none, empty when a commit has nothing beside it. */
  readonly metadata: string | null;
  /** The first offset that the log had when the partition was assigned. */
  readonly start: number;
  /**
   * Commits under the generation of this assignment, whatever the group has become since.
   * @throws Fenced when the generation is over; any other fault may be tried again
   */
  commit(offset: number, metadata: string): Promise<void>;
  /**
   * The batch that holds an offset now; null when the log has none there.
   * @throws LogGone when its topic is; any other fault while no broker tells
   */
  batchAt(offset: number): Promise<LogMark | null>;
  /** The first offset that the log has now. @throws Error while no broker tells */
  firstOffset(): Promise<number>;
  /** Reads on from this offset, or from the first that the log still has. */
  seek(offset: number): void;
  /** Stops and goes on fetching this partition; the others are not touched. */
  pause(): void;
  resume(): void;
}
