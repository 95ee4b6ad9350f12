import type { ActivityRecord, IndexProgressRecord, TokenRecord } from '@playline/contracts';

/** What is published in one step: readers see all of it, or none. */
export interface IndexBatch {
  /** In the order of their chain. */
  readonly activities: readonly ActivityRecord[];
  readonly tokens: readonly TokenRecord[];
  /** How far the chain is indexed with this. */
  readonly progress: IndexProgressRecord;
}

/** The log of one chain, as long as nobody else opens it. */
export interface IndexLog {
  /** What was published last, by whomever; null when the chain was never indexed. */
  readonly progress: IndexProgressRecord | null;
  /**
   * Contracts of the chain's tokens that the log knows by now, by whomever: those that it did not know when it was asked
   * last. `0x` and 40 lower-case digits.
   */
  readTokens(): Promise<ReadonlySet<string>>;
  /**
   * @throws FencedFault when somebody else has opened the log; any other fault leaves open whether the batch is published:
   *   then close it, and open it again to learn
   */
  publish(batch: IndexBatch): Promise<void>;
  close(): Promise<void>;
}

/** Where chains are published. */
export interface IndexLogs {
  /**
   * Opens the log of a chain, and ends whoever had it open: what that one had begun is published whole or undone. Only then
   * what was published last is read; the other way round it would be published twice.
   */
  open(chain: string): Promise<IndexLog>;
  /** What was published last, without taking the log from anybody. */
  readProgress(chain: string): Promise<IndexProgressRecord | null>;
}

/** Somebody else has opened the log: nothing of this process's can be published any more. */
export class FencedFault extends Error {
  override readonly name = 'FencedFault';
}
