import type { ActivityRecord, IndexProgressRecord, TokenRecord } from '@playline/contracts';
import type { SummaryNotice } from './steps/block-summaries.ts';

/** Published in one transaction. */
export interface IndexBatch {
  readonly activities: readonly ActivityRecord[];
  readonly tokens: readonly TokenRecord[];
  /** Published as dead letters of the activities topic. */
  readonly notices: readonly SummaryNotice[];
  /** Progress after this batch. */
  readonly progress: IndexProgressRecord;
}

/** The log of one chain, owned until another process opens it. */
export interface IndexLog {
  /** Progress by any process; null: never indexed. */
  readonly progress: IndexProgressRecord | null;
  /** Contracts of published tokens that the last call did not return, lower case. */
  readTokens(): Promise<ReadonlySet<string>>;
  /** @throws FencedFault after another process has opened the log; after any other fault, open the log again */
  publish(batch: IndexBatch): Promise<void>;
  close(): Promise<void>;
}

export interface IndexLogs {
  /** Fences the earlier owner and settles its open transaction; then reads the progress. */
  open(chain: string): Promise<IndexLog>;
  /** Does not take over the log. */
  readProgress(chain: string): Promise<IndexProgressRecord | null>;
}

/** Another process has opened the log. */
export class FencedFault extends Error {
  override readonly name = 'FencedFault';
}
