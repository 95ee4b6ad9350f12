import {
  FRAME_BYTES,
  frameRecord,
  IDENTITY_KEY_BYTES,
  IDENTITY_TYPES,
  type IdentityKind,
  toUuidText,
  ZERO_KEY,
} from '@playline/contracts';
import { isPlaceholder, isPlaceholderBytes } from '@playline/people';
import {
  createScannedBatch,
  FIELD,
  type Field,
  isEscaped,
  ROW_SHIFT,
  readText,
  type ScannedBatch,
  UUID_BYTES,
} from '../scan/ranges.ts';

/** The data that the gateway adds to every message of a request. */
export interface RecordEnvelope {
  schemaId: number;
  environmentId: string;
  receivedAt: number;
  traceId: string;
}

/** Computes the 16-byte key of an identity; `id` is UTF-8, trimmed and not blank. */
export type KeyOfBytes = (kind: IdentityKind, id: Uint8Array) => Buffer;

/** A record for `audience.messages.v1`. */
export interface EncodedRecord {
  /** Environment id and identity key of the owner; the text of the message id if there is no owner. */
  key: Buffer;
  /** The Avro body in the Confluent wire format. */
  value: Buffer;
}

/**
 * The size of everything but strings: the header, two longs of 10 bytes, six fixed values of 16, a boolean, an optional
 * double of 9, and a length of at most 5 bytes for each of 30 strings.
 */
const OVERHEAD_BYTES_MAX = FRAME_BYTES + 2 * 10 + 6 * 16 + 1 + 9 + 30 * 5;
const LENGTH_BYTES_MAX = 5;
const UUID_TEXT_BYTES = 36;

const NO_BYTES = Buffer.alloc(0);

/** The encoded data that all records of a request share. Usually only the time and trace change between requests. */
class EncodedEnvelope {
  /** The header and the encoded environmentId. */
  prefix: Buffer = NO_BYTES;
  /** The environmentId without its length. */
  environment: Buffer = NO_BYTES;
  receivedAt = 0;
  /** The encoded traceId. */
  suffix: Buffer = NO_BYTES;
  /** Maximum size of a record and its key, without the strings of the message. */
  bytesMax = 0;
  #schemaId = -1;
  #environmentId: string | null = null;
  #traceBytes = -1;

  /** Encodes only the values that changed. */
  update({ schemaId, environmentId, receivedAt, traceId }: RecordEnvelope): void {
    this.receivedAt = receivedAt;
    const isSame = schemaId === this.#schemaId && environmentId === this.#environmentId;
    if (isSame && this.#rewriteTrace(traceId)) return;
    this.environment = Buffer.from(environmentId);
    this.prefix = frameRecord(schemaId, toAvro(environmentId));
    this.suffix = toAvro(traceId);
    this.#schemaId = schemaId;
    this.#environmentId = environmentId;
    this.#traceBytes = Buffer.byteLength(traceId);
    const keyBytesMax = Math.max(this.environment.length + IDENTITY_KEY_BYTES, UUID_TEXT_BYTES);
    this.bytesMax = OVERHEAD_BYTES_MAX + this.environment.length + this.#traceBytes + keyBytesMax;
  }

  /** Returns false if the length differs. */
  #rewriteTrace(traceId: string): boolean {
    if (Buffer.byteLength(traceId) !== this.#traceBytes) return false;
    this.suffix.write(traceId, this.suffix.length - this.#traceBytes);
    return true;
  }
}

function toAvro(text: string): Buffer {
  const bytes = Buffer.alloc(LENGTH_BYTES_MAX + Buffer.byteLength(text));
  return bytes.subarray(0, putText(bytes, 0, text));
}

// Avro's binary encoding. The `put…` functions return the offset after the written bytes.

/** Zigzag encoding, then seven bits per byte, lowest first. */
function putLong(target: Buffer, offset: number, value: number): number {
  let at = offset;
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

function putText(target: Buffer, offset: number, text: string): number {
  const at = putLong(target, offset, Buffer.byteLength(text));
  return at + target.write(text, at);
}

/** For a few bytes, a loop is faster than Buffer.copy. */
function putBytes(target: Buffer, at: number, source: Buffer): number {
  const { length } = source;
  for (let i = 0; i < length; i++) target[at + i] = source[i]!;
  return at + length;
}

/** The first byte of `true`. */
const CHAR_T = 0x74;
/** Up to this size, a loop is at least as fast as Buffer.copy (both take 45 ns). */
const LOOP_COPY_BYTES_MAX = 40;
/**
 * Size of a slab: a buffer that several batches share, so that the garbage collector has fewer objects to track. A slab
 * is smaller than the data in flight on a busy gateway.
 */
const SLAB_BYTES = 512 * 1024;
/** Memory for smaller bodies is reserved without counting their strings, which wastes at most an eighth of a slab. */
const SMALL_BODY_BYTES_MAX = SLAB_BYTES / 8;
/** Shorter lengths take one byte. */
const SHORT_TEXT_BYTES = 64;

/** In the order of `audience-message.avsc`, before `test`. */
const ID_FIELDS = Uint8Array.of(
  FIELD.anonymousId,
  FIELD.userId,
  FIELD.identityType,
  FIELD.fromId,
  FIELD.fromType,
  FIELD.toId,
  FIELD.toType,
  FIELD.deviceId,
  FIELD.sessionId,
  FIELD.surface,
  FIELD.consentLevel,
);
const FIRST_FIELDS = Uint8Array.of(FIELD.type, FIELD.eventName);
const FIELDS_BEFORE_DENSITY = Uint8Array.of(
  FIELD.library,
  FIELD.libraryVersion,
  FIELD.userAgent,
  FIELD.locale,
  FIELD.timezone,
  FIELD.screen,
);
const FIELDS_AFTER_DENSITY = Uint8Array.of(
  FIELD.pageUrl,
  FIELD.pagePath,
  FIELD.pageReferrer,
  FIELD.pageTitle,
  FIELD.browserLanguage,
  FIELD.properties,
  FIELD.traits,
);
const TEXT_FIELDS = Uint8Array.of(...FIRST_FIELDS, ...ID_FIELDS, ...FIELDS_BEFORE_DENSITY, ...FIELDS_AFTER_DENSITY);

/**
 * Encodes the accepted messages of a scanned batch from its bytes. Decodes only strings with escapes. The output is
 * identical to that of the schema's codec.
 */
export type EncodeBatch = (batch: ScannedBatch, envelope: RecordEnvelope, keyOf: KeyOfBytes) => EncodedRecord[];

/** The encoder is synchronous and not reentrant. Records do not share memory with the batch. */
export function createBatchEncoder(): EncodeBatch {
  const encoder = new BatchEncoder();
  return (batch, envelope, keyOf) => encoder.encode(batch, envelope, keyOf);
}

class BatchEncoder {
  #batch: ScannedBatch = createScannedBatch();
  readonly #memory = new RecordMemory();
  readonly #envelope = new EncodedEnvelope();
  readonly #anonymous = new IdentityKeys(IDENTITY_FIELDS.anonymous);
  readonly #user = new IdentityKeys(IDENTITY_FIELDS.user);
  readonly #from = new IdentityKeys(IDENTITY_FIELDS.from);
  readonly #to = new IdentityKeys(IDENTITY_FIELDS.to);
  readonly #fromAsAnonymous = new IdentityKeys(IDENTITY_FIELDS.fromAsAnonymous);
  #owner: Buffer = ZERO_KEY;
  #recordKey: Buffer = NO_BYTES;

  encode(batch: ScannedBatch, envelope: RecordEnvelope, keyOf: KeyOfBytes): EncodedRecord[] {
    this.#batch = batch;
    this.#envelope.update(envelope);
    for (const keys of [this.#anonymous, this.#user, this.#from, this.#to, this.#fromAsAnonymous])
      keys.reset(batch, keyOf);
    this.#owner = ZERO_KEY;
    this.#reserve();
    const records: EncodedRecord[] = [];
    for (let message = 0; message < batch.count; message++)
      if (batch.accepted[message] === 1) records.push(this.#encode(message));
    return records;
  }

  /**
   * Reserves memory for the records. Counts the strings of large bodies, which may be mostly white space, so that
   * records use little more memory than their size.
   */
  #reserve(): void {
    const { body, count } = this.#batch;
    const overhead = count * this.#envelope.bytesMax;
    // A decoded string is never longer than its escaped form.
    const bytesMax = body.length + overhead;
    if (this.#memory.hasCapacity(bytesMax)) return;
    this.#memory.reserve(body.length <= SMALL_BODY_BYTES_MAX ? bytesMax : textBytesOf(this.#batch) + overhead);
  }

  #encode(message: number): EncodedRecord {
    const batch = this.#batch;
    const { bytes, at: start } = this.#memory;
    const { prefix, receivedAt, suffix } = this.#envelope;
    let at = putBytes(bytes, start, prefix);
    at = this.#putTexts(at, message, FIRST_FIELDS);
    at = putLong(bytes, at, batch.eventTimes[message]!);
    at = putLong(bytes, at, receivedAt);
    for (let i = message * UUID_BYTES; i < (message + 1) * UUID_BYTES; i++) bytes[at++] = batch.messageIds[i]!;
    const anonymous = this.#anonymous.get(message);
    const user = this.#user.get(message);
    const owner = user === ZERO_KEY ? anonymous : user;
    at = putKey(bytes, at, owner);
    at = putKey(bytes, at, anonymous);
    at = putKey(bytes, at, user);
    at = putKey(bytes, at, this.#fromKeyOf(message, anonymous));
    at = putKey(bytes, at, this.#to.get(message));
    at = this.#putTexts(at, message, ID_FIELDS);
    bytes[at++] = this.#isTrue(message) ? 1 : 0;
    at = this.#putTexts(at, message, FIELDS_BEFORE_DENSITY);
    at = this.#putDensity(at, message);
    at = this.#putTexts(at, message, FIELDS_AFTER_DENSITY);
    const value = this.#memory.claim(putBytes(bytes, at, suffix));
    return { key: owner === ZERO_KEY ? this.#idKeyOf(message) : this.#ownerKeyOf(owner), value };
  }

  /** An untyped `fromId` that equals the anonymous id is the anonymous identity, as in the link fact. */
  #fromKeyOf(message: number, anonymous: Buffer): Buffer {
    const typeAt = (message << ROW_SHIFT) + FIELD.fromType;
    const { starts, ends } = this.#batch;
    if (anonymous === ZERO_KEY || starts[typeAt] !== ends[typeAt]) return this.#from.get(message);
    const key = this.#fromAsAnonymous.get(message);
    return key.equals(anonymous) ? key : this.#from.get(message);
  }

  #putTexts(offset: number, message: number, fields: Uint8Array): number {
    const { bytes: target } = this.#memory;
    const { body, starts, ends } = this.#batch;
    const escaped = this.#batch.escaped[message]!;
    const row = message << ROW_SHIFT;
    let at = offset;
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i]!;
      const start = starts[row + field]!;
      const end = ends[row + field]!;
      const length = end - start;
      if ((escaped & (1 << field)) !== 0) {
        at = putText(target, at, readText(this.#batch, message, field as Field));
        continue;
      }
      if (length < SHORT_TEXT_BYTES) target[at++] = length << 1;
      else at = putLong(target, at, length);
      if (length > LOOP_COPY_BYTES_MAX) body.copy(target, at, start, end);
      else for (let k = 0; k < length; k++) target[at + k] = body[start + k]!;
      at += length;
    }
    return at;
  }

  /** Writes a union of null and double. */
  #putDensity(at: number, message: number): number {
    const { bytes: target } = this.#memory;
    const slot = (message << ROW_SHIFT) + FIELD.screenDensity;
    const start = this.#batch.starts[slot]!;
    const end = this.#batch.ends[slot]!;
    target[at] = start === end ? 0 : 2;
    if (start === end) return at + 1;
    return target.writeDoubleLE(Number(this.#batch.body.toString('latin1', start, end)), at + 1);
  }

  #isTrue(message: number): boolean {
    const slot = (message << ROW_SHIFT) + FIELD.test;
    const start = this.#batch.starts[slot]!;
    return start !== this.#batch.ends[slot] && this.#batch.body[start] === CHAR_T;
  }

  /** Returns the same buffer while the owner does not change. */
  #ownerKeyOf(owner: Buffer): Buffer {
    if (owner !== this.#owner) {
      const { bytes, at } = this.#memory;
      this.#owner = owner;
      this.#recordKey = this.#memory.claim(putKey(bytes, putBytes(bytes, at, this.#envelope.environment), owner));
    }
    return this.#recordKey;
  }

  /** Copies of a message without an owner have the same key, so that they are in one partition and on one shard. */
  #idKeyOf(message: number): Buffer {
    const { bytes, at } = this.#memory;
    const id = this.#batch.messageIds.subarray(message * UUID_BYTES, (message + 1) * UUID_BYTES);
    return this.#memory.claim(at + bytes.write(toUuidText(id), at, 'latin1'));
  }
}

/** Memory for encoded records. A slab is garbage-collected when none of its records is referenced. */
class RecordMemory {
  bytes = Buffer.alloc(0);
  at = 0;

  hasCapacity(bytes: number): boolean {
    return this.at + bytes <= this.bytes.length;
  }

  /** Earlier records are not affected. */
  reserve(bytesMax: number): void {
    if (this.hasCapacity(bytesMax)) return;
    this.bytes = Buffer.allocUnsafeSlow(Math.max(bytesMax, SLAB_BYTES));
    this.at = 0;
  }

  /** Returns the bytes from `at` to `end`, and advances `at`. */
  claim(end: number): Buffer {
    const claimed = this.bytes.subarray(this.at, end);
    this.at = end;
    return claimed;
  }
}

/** Returns the UTF-8 size of all strings in the records. */
function textBytesOf(batch: ScannedBatch): number {
  const { count, starts, ends } = batch;
  let bytes = 0;
  for (let message = 0; message < count; message++) {
    if (batch.accepted[message] === 0) continue;
    const escaped = batch.escaped[message]!;
    for (let i = 0; i < TEXT_FIELDS.length; i++) {
      const field = TEXT_FIELDS[i]!;
      const slot = (message << ROW_SHIFT) + field;
      if ((escaped & (1 << field)) === 0) bytes += ends[slot]! - starts[slot]!;
      else bytes += Buffer.byteLength(readText(batch, message, field as Field));
    }
  }
  return bytes;
}

function putKey(target: Buffer, at: number, key: Buffer): number {
  for (let i = 0; i < IDENTITY_KEY_BYTES; i++) target[at + i] = key[i]!;
  return at + IDENTITY_KEY_BYTES;
}

interface IdentityFields {
  id: Field;
  type: Field | null;
}

/** The fields that can identify a person. */
const IDENTITY_FIELDS = {
  anonymous: { id: FIELD.anonymousId, type: null },
  user: { id: FIELD.userId, type: FIELD.identityType },
  from: { id: FIELD.fromId, type: FIELD.fromType },
  to: { id: FIELD.toId, type: FIELD.toType },
  /** An untyped `fromId` that may be the message's anonymous id. */
  fromAsAnonymous: { id: FIELD.fromId, type: null },
} as const satisfies Record<string, IdentityFields>;

function isSameText(batch: ScannedBatch, slot: number, otherSlot: number): boolean {
  const { body, starts, ends } = batch;
  const start = starts[slot]!;
  const length = ends[slot]! - start;
  const otherStart = starts[otherSlot]!;
  if (ends[otherSlot]! - otherStart !== length) return false;
  for (let i = 0; i < length; i++) if (body[start + i] !== body[otherStart + i]) return false;
  return true;
}

/** Returns true for ASCII characters that trimming does not remove. */
function isVisibleAscii(byte: number): boolean {
  return byte > 0x20 && byte < 0x80;
}

const NO_BATCH = createScannedBatch();

/**
 * Computes the keys of one identity field in a batch. A batch usually comes from one client, so the previous key is
 * reused if the bytes are equal.
 */
class IdentityKeys {
  #batch: ScannedBatch = NO_BATCH;
  readonly #fields: IdentityFields;
  #keyOf: KeyOfBytes = () => ZERO_KEY;
  #last = -1;
  #key: Buffer = ZERO_KEY;

  constructor(fields: IdentityFields) {
    this.#fields = fields;
  }

  reset(batch: ScannedBatch, keyOf: KeyOfBytes): void {
    this.#batch = batch;
    this.#keyOf = keyOf;
    this.#last = -1;
  }

  /** Returns a key of 16 bytes, or `ZERO_KEY` itself if the field is blank or a placeholder. */
  get(message: number): Buffer {
    const slot = (message << ROW_SHIFT) + this.#fields.id;
    if (this.#batch.starts[slot] === this.#batch.ends[slot]) return ZERO_KEY;
    if (this.#last < 0 || !this.#isSameAsLast(message)) {
      this.#key = this.#compute(message);
      this.#last = message;
    }
    return this.#key;
  }

  #isSameAsLast(message: number): boolean {
    const { id, type } = this.#fields;
    const row = message << ROW_SHIFT;
    const lastRow = this.#last << ROW_SHIFT;
    if (!isSameText(this.#batch, row + id, lastRow + id)) return false;
    return type === null || isSameText(this.#batch, row + type, lastRow + type);
  }

  #compute(message: number): Buffer {
    const { body, starts, ends } = this.#batch;
    const { id } = this.#fields;
    const slot = (message << ROW_SHIFT) + id;
    const [start, end] = [starts[slot]!, ends[slot]!];
    const isPlain =
      isVisibleAscii(body[start]!) && isVisibleAscii(body[end - 1]!) && !isEscaped(this.#batch, message, id);
    if (isPlain) {
      const bytes = body.subarray(start, end);
      return isPlaceholderBytes(bytes) ? ZERO_KEY : this.#keyOf(this.#kindOf(message), bytes);
    }
    const text = readText(this.#batch, message, id).trim();
    return isPlaceholder(text) ? ZERO_KEY : this.#keyOf(this.#kindOf(message), Buffer.from(text));
  }

  #kindOf(message: number): IdentityKind {
    if (this.#fields.type === null) return 'anonymous';
    const text = readText(this.#batch, message, this.#fields.type);
    return IDENTITY_TYPES.find((type) => type === text) ?? 'untyped';
  }
}
