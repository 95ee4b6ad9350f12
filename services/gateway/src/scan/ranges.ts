import { BATCH_MESSAGES_MAX } from '@playline/contracts';

/** Index of each field in a message's row of `starts` and `ends`: message fields first, then context fields. */
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

/** Width of a message's row: the number of fields, rounded up to a power of two. A row starts at `message << 5`. */
export const ROW_WIDTH = 32;
export const ROW_SHIFT = 5;

/** Bytes of a messageId that is a UUID. */
export const UUID_BYTES = 16;

/**
 * The ranges of the fields of a batch's messages in its body, without strings or objects.
 * An empty range is an absent field, null or an empty string, which are stored alike. The range of a string is between
 * its quotes; that of an object, a number or a boolean is the whole value.
 */
export interface ScannedBatch {
  body: Buffer;
  /** Number of messages. */
  count: number;
  /** Per message: 1 when it keeps every rule, so a record is written for it. */
  readonly accepted: Uint8Array;
  /** First byte of field f of message m at `(m << ROW_SHIFT) + f`. */
  readonly starts: Int32Array;
  /** The byte after the last, likewise. */
  readonly ends: Int32Array;
  /** Per message: bit f is set when the string of field f has escapes. */
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

/** Text of a field of a scanned message; '' when absent. */
export function textOf(batch: ScannedBatch, message: number, field: Field): string {
  const slot = (message << ROW_SHIFT) + field;
  const raw = batch.body.toString('utf8', batch.starts[slot], batch.ends[slot]);
  return isEscaped(batch, message, field) ? JSON.parse(`"${raw}"`) : raw;
}

export function isEscaped(batch: ScannedBatch, message: number, field: Field): boolean {
  return (batch.escaped[message]! & (1 << field)) !== 0;
}

/** Verdicts of the scan on a message: it keeps every rule; it may break one; it is not an object. */
export const VALID = 0;
export const UNCERTAIN = 1;
export const NO_OBJECT = 2;

/** State that the parts of one scan share. */
export interface ScanState {
  bytes: Buffer;
  /** Filled during the scan. */
  readonly batch: ScannedBatch;
  /** Index of the message being scanned. */
  message: number;
  /** Time window, both bounds inclusive, epoch milliseconds. */
  fromMs: number;
  toMs: number;
  /** True when the message being scanned may break a rule. */
  isUncertain: boolean;
  /** Per message: `SOUND`, `DOUBTFUL` or `NO_OBJECT`. */
  readonly verdicts: Uint8Array;
  /** Per message: its first byte, and the byte after its last. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** Per message: 1 when its id is a UUID, which is then in `batch.messageIds`. */
  readonly hasUuid: Uint8Array;
  /** Per message: bit f is set when field f is nested too deep. */
  readonly tooDeep: Int32Array;
  /** Per message: bit f is set when the free-form field f may have values that ClickHouse cannot read. */
  readonly odd: Int32Array;
  /** Per message: bit f is set when a key may come twice in an object of the free-form field f. */
  readonly repeated: Int32Array;
}
