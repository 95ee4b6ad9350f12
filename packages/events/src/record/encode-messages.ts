import { type EventContext, type Message, ZERO_KEY } from '@playline/contracts';
import { AvroWriter } from './avro-writer.ts';
import type { EncodedRecord, KeyOf, RecordEnvelope, SourcedMessage } from './envelope.ts';
import { type IdentityReference, identitiesOf } from './identities.ts';
import { type EncodedEnvelope, encodeEnvelope, KEY_BYTES, recordKeyOf } from './layout.ts';

/** UTF-8 bytes of one UTF-16 unit, at most. */
const UTF8_BYTES_PER_UNIT = 3;

/** A first guess at a record's size. */
const RECORD_BYTES_TYPICAL = 1500;

const NO_CONTEXT: Partial<EventContext> = {};

/**
 * Encodes parsed messages: what the encoder of scanned ones is tested against. Both write the same bytes, and the same
 * as avsc does for the `MessageRecord`.
 */
export function encodeMessages(
  messages: readonly SourcedMessage[],
  envelope: RecordEnvelope,
  keyOf: KeyOf,
): EncodedRecord[] {
  const writer = new AvroWriter(messages.length * RECORD_BYTES_TYPICAL);
  const encoded = encodeEnvelope(envelope);
  const keyBytes = (identity: IdentityReference | null): Buffer =>
    identity === null ? ZERO_KEY : Buffer.from(keyOf(identity.kind, identity.id));
  return messages.map(({ message, propertiesText, traitsText }) => {
    const identities = identitiesOf(message);
    const keys = {
      owner: keyBytes(identities.owner),
      anonymous: keyBytes(identities.anonymous),
      user: keyBytes(identities.user),
      from: keyBytes(identities.from),
      to: keyBytes(identities.to),
    };
    const texts = {
      properties: jsonText(message.properties, propertiesText),
      traits: jsonText(message.traits, traitsText),
    };
    writer.reserve(encoded.bytesMax + unitsOf(message, texts) * UTF8_BYTES_PER_UNIT);
    writeRecord(writer, { message, keys, texts, envelope: encoded });
    return { key: identities.owner === null ? null : recordKeyOf(encoded, keys.owner), value: writer.finish() };
  });
}

interface Parts {
  message: Message;
  keys: Record<'owner' | 'anonymous' | 'user' | 'from' | 'to', Buffer>;
  texts: { properties: string; traits: string };
  envelope: EncodedEnvelope;
}

function jsonText(value: object | undefined, asSent: string | undefined): string {
  return value === undefined ? '' : (asSent ?? JSON.stringify(value));
}

function unitsOf(message: Message, texts: Parts['texts']): number {
  let units = texts.properties.length + texts.traits.length;
  for (const value of Object.values(message)) if (typeof value === 'string') units += value.length;
  for (const value of Object.values(message.context ?? NO_CONTEXT)) {
    if (typeof value === 'string') units += value.length;
  }
  return units;
}

/** Field order of `audience-message.avsc`. */
function writeRecord(writer: AvroWriter, { message, keys, texts, envelope }: Parts): void {
  writer.raw(envelope.head, 0, envelope.head.length);
  writer.text(message.type);
  writer.text(message.eventName);
  writer.long(message.eventTime);
  writer.raw(envelope.receivedAt, 0, envelope.receivedAt.length);
  writer.raw(Buffer.from(message.messageId.replaceAll('-', ''), 'hex'), 0, KEY_BYTES);
  for (const key of [keys.owner, keys.anonymous, keys.user, keys.from, keys.to]) writer.raw(key, 0, KEY_BYTES);
  writer.text(message.anonymousId);
  writer.text(message.userId);
  writer.text(message.identityType);
  writer.text(message.fromId);
  writer.text(message.fromType);
  writer.text(message.toId);
  writer.text(message.toType);
  writer.text(message.deviceId);
  writer.text(message.sessionId);
  writer.text(message.surface);
  writer.text(message.consentLevel);
  writer.boolean(message.test ?? false);
  writeContext(writer, message.context ?? NO_CONTEXT);
  writer.text(texts.properties);
  writer.text(texts.traits);
  writer.raw(envelope.tail, 0, envelope.tail.length);
}

function writeContext(writer: AvroWriter, context: Partial<EventContext>): void {
  writer.text(context.library);
  writer.text(context.libraryVersion);
  writer.text(context.userAgent);
  writer.text(context.locale);
  writer.text(context.timezone);
  writer.text(context.screen);
  writer.optionalDouble(context.screenDensity);
  writer.text(context.pageUrl);
  writer.text(context.pagePath);
  writer.text(context.pageReferrer);
  writer.text(context.pageTitle);
  writer.text(context.browserLanguage);
}
