import type { ScannedBatch } from './ranges.ts';

/** What the scan says of a message: every rule is kept; some rule may not be; it is no object. */
export const SOUND = 0;
export const DOUBTFUL = 1;
export const NO_OBJECT = 2;

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
  /** True when some rule may speak against the message being scanned. */
  isDoubtful: boolean;
  /** Per message: `SOUND`, `DOUBTFUL` or `NO_OBJECT`. */
  readonly verdicts: Uint8Array;
  /** Per message: its first byte, and the byte after its last. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** Per message: 1 when its id is a UUID, which then stands in `batch.messageIds`. */
  readonly hasUuid: Uint8Array;
  /** Per message: bit f is set when field f is nested deeper than it may be. */
  readonly tooDeep: Int32Array;
  /** Per message: bit f is set when the free-form field f may hold what the column store cannot read. */
  readonly odd: Int32Array;
}
