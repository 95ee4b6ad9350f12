import type { ActivityRecord, IndexProgressRecord, TokenRecord } from '@playline/contracts';
import type { SummaryNotice } from './steps/block-summaries.ts';

/** A batch that is published in one transaction. */
export interface IndexBatch {
  readonly activities: readonly ActivityRecord[];
  readonly tokens: readonly TokenRecord[];
  /** Published as dead letters for the activities topic. */
  readonly notices: readonly SummaryNotice[];
  /** The progress after this batch. */
  readonly progress: IndexProgressRecord;
}

/** A chain's log. Owned until another process opens the log. */
export interface IndexLog {
  /** The progress made by any process, or null if the chain was never indexed. */
  readonly progress: IndexProgressRecord | null;
  /** Returns the contracts of published tokens, in lower case, that earlier calls did not return. */
  readTokens(): Promise<ReadonlySet<string>>;
  /** @throws FencedFault if another process has opened the log. After any other fault, the log must be reopened */
  publish(batch: IndexBatch): Promise<void>;
  close(): Promise<void>;
}

export interface IndexLogs {
  /** Fences the previous owner, ends its open transaction, and then reads the progress. */
  open(chain: string): Promise<IndexLog>;
  /** Reads the progress without taking over the log. */
  readProgress(chain: string): Promise<IndexProgressRecord | null>;
}

/** Another process has opened the log. */
export class FencedFault extends Error {
  override readonly name = 'FencedFault';
}
