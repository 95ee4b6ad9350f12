import { FRAME_BYTES, frameRecord, IDENTITY_KEY_BYTES, type IdentityKind } from '@playline/contracts';

/** What the gateway adds to every message of a request. */
export interface RecordEnvelope {
  /** Id of the message schema in the registry. */
  schemaId: number;
  environmentId: string;
  /** Epoch milliseconds. */
  receivedAt: number;
  /** 32 lower-case hex characters. */
  traceId: string;
}

/**
 * Computes the 16-byte key of an identity; `id` is UTF-8, trimmed and not blank. The key is not modified later.
 */
export type KeyOfBytes = (kind: IdentityKind, id: Uint8Array) => Buffer;

/** One record for `audience.messages.v1`. */
export interface EncodedRecord {
  /** Bytes of the environment id, then the 16 bytes of the owner's key; null when nobody owns the message. */
  key: Buffer | null;
  /** Confluent frame and Avro body. */
  value: Buffer;
}

/**
 * Most bytes of a record besides its strings: frame 5, two longs of 10, six fixed of 16, a boolean, an optional double
 * of 9, and a length of at most 5 bytes for each of 30 strings.
 */
const OVERHEAD_BYTES_MAX = FRAME_BYTES + 2 * 10 + 6 * 16 + 1 + 9 + 30 * 5;
/** Bytes that the length of an Avro string takes, at most. */
const LENGTH_BYTES_MAX = 5;

const NO_BYTES = Buffer.alloc(0);

/**
 * The encoded parts of records that all messages of a request share. Most requests differ only in time and trace, so
 * the rest is not encoded again for each.
 */
export class EncodedEnvelope {
  /** Frame and environmentId. */
  head: Buffer = NO_BYTES;
  /** The environment id, raw. */
  environment: Buffer = NO_BYTES;
  /** Epoch milliseconds. */
  receivedAt = 0;
  /** traceId, encoded. */
  tail: Buffer = NO_BYTES;
  /** Most bytes of a record and its key, besides the strings of its message. */
  bytesMax = 0;
  #schemaId = -1;
  #environmentId: string | null = null;
  #traceBytes = -1;

  /** Sets the values that the records of the next request share; encodes only those that changed. */
  turnTo({ schemaId, environmentId, receivedAt, traceId }: RecordEnvelope): void {
    this.receivedAt = receivedAt;
    const isSame = schemaId === this.#schemaId && environmentId === this.#environmentId;
    if (isSame && this.#rewriteTrace(traceId)) return;
    this.environment = Buffer.from(environmentId);
    this.head = frameRecord(schemaId, toAvro(environmentId));
    this.tail = toAvro(traceId);
    this.#schemaId = schemaId;
    this.#environmentId = environmentId;
    this.#traceBytes = Buffer.byteLength(traceId);
    this.bytesMax = OVERHEAD_BYTES_MAX + 2 * this.environment.length + this.#traceBytes + IDENTITY_KEY_BYTES;
  }

  /** Overwrites the trace with one of the same length. @returns false when the length differs */
  #rewriteTrace(traceId: string): boolean {
    if (Buffer.byteLength(traceId) !== this.#traceBytes) return false;
    this.tail.write(traceId, this.tail.length - this.#traceBytes);
    return true;
  }
}

function toAvro(text: string): Buffer {
  const bytes = Buffer.alloc(LENGTH_BYTES_MAX + Buffer.byteLength(text));
  return bytes.subarray(0, putText(bytes, 0, text));
}

// Avro's binary encoding, written into a buffer that has room for it. Each call returns the place after what it wrote.

/** Avro long of a safe integer: zigzag, then seven bits a byte, lowest first. */
export function putLong(target: Buffer, place: number, value: number): number {
  let at = place;
  let rest = value >= 0 ? value * 2 : -value * 2 - 1;
  while (rest > 0xffffffff) {
    target[at++] = (rest % 128) | 128;
    rest = Math.floor(rest / 128);
  }
  while (rest > 127) {
    target[at++] = (rest & 127) | 128;
    rest >>>= 7;
  }
  target[at++] = rest;
  return at;
}

/** Avro string of a JavaScript string. */
export function putText(target: Buffer, place: number, text: string): number {
  const at = putLong(target, place, Buffer.byteLength(text));
  return at + target.write(text, at);
}

/** Copies few bytes unchanged: a loop is faster than the call of Buffer.copy. */
export function putAll(target: Buffer, at: number, source: Buffer): number {
  const { length } = source;
  for (let i = 0; i < length; i++) target[at + i] = source[i]!;
  return at + length;
}
