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
 * The ranges of all fields in the body. An empty range means that the field is absent, null or ''. The range of a string
 * excludes its quotes.
 */
export interface ScannedBatch {
  body: Buffer;
  count: number;
  /** Per message: 1 if the message is accepted. */
  readonly accepted: Uint8Array;
  /** The start offset of field f in message m is at `(m << ROW_SHIFT) + f`. */
  readonly starts: Int32Array;
  /** End offsets, exclusive. */
  readonly ends: Int32Array;
  /** Per message: bit f is set if field f has escapes. */
  readonly escaped: Int32Array;
  /** 16 bytes per message. */
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

/** Returns '' if the field is absent. */
export function readText(batch: ScannedBatch, message: number, field: Field): string {
  const slot = (message << ROW_SHIFT) + field;
  const raw = batch.body.toString('utf8', batch.starts[slot], batch.ends[slot]);
  return isEscaped(batch, message, field) ? JSON.parse(`"${raw}"`) : raw;
}

export function isEscaped(batch: ScannedBatch, message: number, field: Field): boolean {
  return (batch.escaped[message]! & (1 << field)) !== 0;
}

/** Verdicts on a message. `UNCERTAIN` means that the message may be invalid. */
export const VALID = 0;
export const UNCERTAIN = 1;
export const NOT_AN_OBJECT = 2;

/** The state of a scan. */
export interface ScanState {
  bytes: Buffer;
  readonly batch: ScannedBatch;
  /** Index of the current message. */
  message: number;
  /** The time window in epoch milliseconds, both bounds inclusive. */
  fromMs: number;
  toMs: number;
  nowMs: number | undefined;
  /** True if the current message may be invalid. */
  isUncertain: boolean;
  /** Per message: `VALID`, `UNCERTAIN` or `NOT_AN_OBJECT`. */
  readonly verdicts: Uint8Array;
  /** Per message: start offset, and end offset (exclusive). */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** Per message: 1 if `batch.messageIds` contains the UUID of the message. */
  readonly hasUuid: Uint8Array;
  /** Per message: bit f is set if field f is nested too deeply. */
  readonly tooDeep: Int32Array;
  /** Per message: bit f is set if ClickHouse may misread values in field f. */
  readonly unsafe: Int32Array;
  /** Per message: bit f is set if an object in field f may have duplicate keys. */
  readonly duplicateKeys: Int32Array;
}
