import type { ScannedBatch } from '@playline/events';

/** What the parts of one scan share. */
export interface ScanState {
  bytes: Buffer;
  /** Filled as the scan goes. */
  readonly batch: ScannedBatch;
  /** Number of the message being scanned. */
  message: number;
  /** Time window, both bounds inclusive, epoch milliseconds. */
  fromMs: number;
  toMs: number;
}
