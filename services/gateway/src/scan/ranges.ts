import { BATCH_MESSAGES_MAX } from '@playline/contracts';

/** Index of each field in a row of `starts` and `ends`: message fields, then context fields. */
export const FIELD = {
  type: 0,
  messageId: 1,
  eventTimestamp: 2,
  anonymousId: 3,
  deviceId: 4,
  sessionId: 5,
  eventName: 6,
  userId: 7,
  fromId: 8,
  toId: 9,
  identityType: 10,
  fromType: 11,
  toType: 12,
  surface: 13,
  consentLevel: 14,
  test: 15,
  properties: 16,
  traits: 17,
  context: 18,
  library: 19,
  libraryVersion: 20,
  userAgent: 21,
  locale: 22,
  timezone: 23,
  screen: 24,
  pageUrl: 25,
  pagePath: 26,
  pageReferrer: 27,
  pageTitle: 28,
  browserLanguage: 29,
  screenDensity: 30,
} as const;
export type FieldName = keyof typeof FIELD;
export type Field = (typeof FIELD)[FieldName];

/** The number of fields, rounded up to a power of two. */
export const ROW_WIDTH = 32;
export const ROW_SHIFT = 5;

export const UUID_BYTES = 16;

/**
 * The ranges of the fields in the body. An empty range is an absent field, null or ''. The range of a string is between
 * its quotes.
 */
export interface ScannedBatch {
  body: Buffer;
  count: number;
  /** Per message: 1 when a record is written. */
  readonly accepted: Uint8Array;
  /** First byte of field f of message m at `(m << ROW_SHIFT) + f`. */
  readonly starts: Int32Array;
  /** The byte after the last. */
  readonly ends: Int32Array;
  /** Per message: bit f is set when field f has escapes. */
  readonly escaped: Int32Array;
  /** Sixteen bytes per message. */
  readonly messageIds: Buffer;
  /** Epoch milliseconds, per message. */
  readonly eventTimes: Float64Array;
}

export function createScannedBatch(): ScannedBatch {
  return {
    body: Buffer.alloc(0),
    count: 0,
    accepted: new Uint8Array(BATCH_MESSAGES_MAX),
    starts: new Int32Array(BATCH_MESSAGES_MAX * ROW_WIDTH),
    ends: new Int32Array(BATCH_MESSAGES_MAX * ROW_WIDTH),
    escaped: new Int32Array(BATCH_MESSAGES_MAX),
    messageIds: Buffer.alloc(BATCH_MESSAGES_MAX * UUID_BYTES),
    eventTimes: new Float64Array(BATCH_MESSAGES_MAX),
  };
}

/** '' when absent. */
export function textOf(batch: ScannedBatch, message: number, field: Field): string {
  const slot = (message << ROW_SHIFT) + field;
  const raw = batch.body.toString('utf8', batch.starts[slot], batch.ends[slot]);
  return isEscaped(batch, message, field) ? JSON.parse(`"${raw}"`) : raw;
}

export function isEscaped(batch: ScannedBatch, message: number, field: Field): boolean {
  return (batch.escaped[message]! & (1 << field)) !== 0;
}

/** Verdicts on a message: valid; may be invalid; not an object. */
export const VALID = 0;
export const UNCERTAIN = 1;
export const NO_OBJECT = 2;

/** State of one scan. */
export interface ScanState {
  bytes: Buffer;
  readonly batch: ScannedBatch;
  /** Index of the current message. */
  message: number;
  /** Epoch milliseconds, both inclusive. */
  fromMs: number;
  toMs: number;
  /** The current message may be invalid. */
  isUncertain: boolean;
  /** Per message: `VALID`, `UNCERTAIN` or `NO_OBJECT`. */
  readonly verdicts: Uint8Array;
  /** Per message: first byte, and the byte after the last. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** Per message: 1 when `batch.messageIds` has its UUID. */
  readonly hasUuid: Uint8Array;
  /** Per message: bit f is set when field f is nested too deep. */
  readonly tooDeep: Int32Array;
  /** Per message: bit f is set when ClickHouse may misread values of field f. */
  readonly odd: Int32Array;
  /** Per message: bit f is set when an object of field f may have equal keys. */
  readonly repeated: Int32Array;
}
