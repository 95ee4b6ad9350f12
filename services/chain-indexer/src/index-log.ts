import type { ActivityRecord, IndexProgressRecord, TokenRecord } from '@playline/contracts';
import type { SummaryNotice } from './steps/block-summaries.ts';

/** Published in one transaction: readers see all of it or nothing. */
export interface IndexBatch {
  /** In the order of the chain. */
  readonly activities: readonly ActivityRecord[];
  readonly tokens: readonly TokenRecord[];
  /** Published as dead letters of the topic of activities: operators list them, and settle them once read. */
  readonly notices: readonly SummaryNotice[];
  /** How far the chain is indexed after this batch. */
  readonly progress: IndexProgressRecord;
}

/** The log of one chain, owned until another process opens it. */
export interface IndexLog {
  /** The last published progress, by any process; null when the chain was never indexed. */
  readonly progress: IndexProgressRecord | null;
  /**
   * Contracts of the chain's tokens that the log has, published by any process, and that the last call did not return.
   * `0x` and 40 lower-case digits.
   */
  readTokens(): Promise<ReadonlySet<string>>;
  /**
   * @throws FencedFault when another process has opened the log. After any other fault it is unknown whether the batch
   * was published: close the log and open it again to find out
   */
  publish(batch: IndexBatch): Promise<void>;
  close(): Promise<void>;
}

/** The logs of all chains. */
export interface IndexLogs {
  /**
   * Opens the log of a chain and fences its earlier owner, whose open transaction is committed or aborted as a whole.
   * The last progress is read after that; in the other order a range could be published twice.
   */
  open(chain: string): Promise<IndexLog>;
  /** The last published progress, without taking the log from its owner. */
  readProgress(chain: string): Promise<IndexProgressRecord | null>;
}

/** Another process has opened the log, so this one can publish nothing more. */
export class FencedFault extends Error {
  override readonly name = 'FencedFault';
}
