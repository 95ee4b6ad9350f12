import { ZERO_KEY } from '@playline/contracts';
import { AvroWriter } from './avro-writer.ts';
import type { EncodedRecord, KeyOf, RecordEnvelope } from './envelope.ts';
import { IDENTITY_FIELDS, IdentityKeys } from './identity-keys.ts';
import { type EncodedEnvelope, encodeEnvelope, KEY_BYTES, recordKeyOf } from './layout.ts';
import { FIELD, type Field, isEscaped, ROW_SHIFT, type ScannedBatch, textOf, UUID_BYTES } from './ranges.ts';

/** First byte of `true`. */
const LETTER_T = 0x74;

/** String fields in the order of `audience-message.avsc`, up to `test`. */
const ID_FIELDS = [
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
] as const;
const FIELDS_BEFORE_DENSITY = [
  FIELD.library,
  FIELD.libraryVersion,
  FIELD.userAgent,
  FIELD.locale,
  FIELD.timezone,
  FIELD.screen,
] as const;
const FIELDS_AFTER_DENSITY = [
  FIELD.pageUrl,
  FIELD.pagePath,
  FIELD.pageReferrer,
  FIELD.pageTitle,
  FIELD.browserLanguage,
  FIELD.properties,
  FIELD.traits,
] as const;

/**
 * Encodes a scanned batch straight from its bytes: the fast path. Strings are copied, not decoded, unless they hold
 * escapes. Writes the same bytes as `encodeMessages` does for the same messages.
 */
export function encodeScanned(batch: ScannedBatch, envelope: RecordEnvelope, keyOf: KeyOf): EncodedRecord[] {
  const encoded = encodeEnvelope(envelope);
  // A decoded string is never longer than its escaped text, so the whole batch fits into one buffer.
  const encoder = new ScannedEncoder(batch, encoded, keyOf);
  const records = new Array<EncodedRecord>(batch.count);
  for (let message = 0; message < batch.count; message++) records[message] = encoder.encode(message);
  return records;
}

class ScannedEncoder {
  readonly #batch: ScannedBatch;
  readonly #envelope: EncodedEnvelope;
  readonly #writer: AvroWriter;
  readonly #anonymous: IdentityKeys;
  readonly #user: IdentityKeys;
  readonly #from: IdentityKeys;
  readonly #to: IdentityKeys;
  #owner: Buffer = ZERO_KEY;
  #recordKey: Buffer | null = null;

  constructor(batch: ScannedBatch, envelope: EncodedEnvelope, keyOf: KeyOf) {
    this.#batch = batch;
    this.#envelope = envelope;
    this.#writer = new AvroWriter(batch.body.length + batch.count * envelope.bytesMax);
    this.#anonymous = new IdentityKeys(batch, IDENTITY_FIELDS.anonymous, keyOf);
    this.#user = new IdentityKeys(batch, IDENTITY_FIELDS.user, keyOf);
    this.#from = new IdentityKeys(batch, IDENTITY_FIELDS.from, keyOf);
    this.#to = new IdentityKeys(batch, IDENTITY_FIELDS.to, keyOf);
  }

  encode(message: number): EncodedRecord {
    const writer = this.#writer;
    const envelope = this.#envelope;
    writer.reserve(0);
    writer.raw(envelope.head, 0, envelope.head.length);
    this.#text(message, FIELD.type);
    this.#text(message, FIELD.eventName);
    writer.long(this.#batch.eventTimes[message]!);
    writer.raw(envelope.receivedAt, 0, envelope.receivedAt.length);
    writer.raw(this.#batch.messageIds, message * UUID_BYTES, (message + 1) * UUID_BYTES);
    const key = this.#keys(message);
    this.#texts(message, ID_FIELDS);
    writer.boolean(this.#isTrue(message, FIELD.test));
    this.#texts(message, FIELDS_BEFORE_DENSITY);
    writer.optionalDouble(this.#number(message, FIELD.screenDensity));
    this.#texts(message, FIELDS_AFTER_DENSITY);
    writer.raw(envelope.tail, 0, envelope.tail.length);
    return { key, value: writer.finish() };
  }

  /** Writes the five keys. @returns the record key. */
  #keys(message: number): Buffer | null {
    const anonymous = this.#anonymous.of(message);
    const user = this.#user.of(message);
    const owner = user === ZERO_KEY ? anonymous : user;
    this.#key(owner);
    this.#key(anonymous);
    this.#key(user);
    this.#key(this.#from.of(message));
    this.#key(this.#to.of(message));
    if (owner === ZERO_KEY) return null;
    if (owner !== this.#owner) {
      this.#owner = owner;
      this.#recordKey = recordKeyOf(this.#envelope, owner);
    }
    return this.#recordKey;
  }

  #key(key: Buffer): void {
    this.#writer.raw(key, 0, KEY_BYTES);
  }

  #texts(message: number, fields: readonly Field[]): void {
    for (let i = 0; i < fields.length; i++) this.#text(message, fields[i]!);
  }

  #text(message: number, field: Field): void {
    const batch = this.#batch;
    if (isEscaped(batch, message, field)) {
      this.#writer.text(textOf(batch, message, field));
      return;
    }
    const slot = (message << ROW_SHIFT) + field;
    this.#writer.textBytes(batch.body, batch.starts[slot]!, batch.ends[slot]!);
  }

  #isTrue(message: number, field: Field): boolean {
    const slot = (message << ROW_SHIFT) + field;
    const start = this.#batch.starts[slot]!;
    return start !== this.#batch.ends[slot] && this.#batch.body[start] === LETTER_T;
  }

  #number(message: number, field: Field): number | undefined {
    const slot = (message << ROW_SHIFT) + field;
    const start = this.#batch.starts[slot]!;
    const end = this.#batch.ends[slot]!;
    return start === end ? undefined : Number(this.#batch.body.toString('latin1', start, end));
  }
}
