import {
  type EventContext,
  frameRecord,
  type IdentityKind,
  type Message,
  type MessageRecord,
  messageRecordCodec,
  toUuidText,
  ZERO_KEY,
} from '@playline/contracts';
import { isPlaceholder } from '@playline/people';
import type { EncodedRecord, RecordEnvelope } from '../record/encode-batch.ts';

/** Computes the 16-byte key of an identity. `id` is trimmed and not blank. */
export type KeyOf = (kind: IdentityKind, id: string) => Buffer;

/** An accepted message, optionally with its free-form objects as written in the body. */
export interface SourcedMessage {
  message: Message;
  /** By default, the object is formatted with JSON.stringify. */
  propertiesText?: string;
  /** By default, the object is formatted with JSON.stringify. */
  traitsText?: string;
}

const NO_CONTEXT: Partial<EventContext> = {};
/** Values stored for absent strings. */
const TEXTS = {
  eventName: '',
  anonymousId: '',
  userId: '',
  identityType: '',
  fromId: '',
  fromType: '',
  toId: '',
  toType: '',
  deviceId: '',
  sessionId: '',
  surface: '',
  consentLevel: '',
};
const CONTEXT_TEXTS = {
  library: '',
  libraryVersion: '',
  userAgent: '',
  locale: '',
  timezone: '',
  screen: '',
  pageUrl: '',
  pagePath: '',
  pageReferrer: '',
  pageTitle: '',
  browserLanguage: '',
};

/** An identity in a message. The id is trimmed. */
export interface IdentityReference {
  kind: IdentityKind;
  id: string;
}

type IdFields = 'anonymousId' | 'userId' | 'identityType' | 'fromId' | 'fromType' | 'toId' | 'toType';

function toReference(kind: IdentityKind, id: string | undefined): IdentityReference | null {
  const trimmed = id?.trim() ?? '';
  return isPlaceholder(trimmed) ? null : { kind, id: trimmed };
}

/**
 * Returns the identities of a message. An id without a type is `untyped`, except a `fromId` that equals the anonymous
 * id. The owner is the user or, without a user, the anonymous id.
 */
export function identitiesOf(message: Pick<Message, IdFields>) {
  const anonymous = toReference('anonymous', message.anonymousId);
  const user = toReference(message.identityType ?? 'untyped', message.userId);
  const isAnonymous = message.fromType === undefined && message.fromId?.trim() === anonymous?.id;
  const from = toReference(isAnonymous ? 'anonymous' : (message.fromType ?? 'untyped'), message.fromId);
  const to = toReference(message.toType ?? 'untyped', message.toId);
  return { owner: user ?? anonymous, anonymous, user, from, to };
}

/**
 * Encodes parsed messages with the schema's codec. Tests compare the output byte by byte with that of the encoder for
 * scanned bodies.
 */
export function encodeByCodec(
  messages: readonly SourcedMessage[],
  envelope: RecordEnvelope,
  keyOf: KeyOf,
): EncodedRecord[] {
  return messages.map((sourced) => {
    const record = toMessageRecord(sourced, envelope, keyOf);
    const isOwned = identitiesOf(sourced.message).owner !== null;
    return {
      key: isOwned
        ? Buffer.concat([Buffer.from(envelope.environmentId), record.identityKey])
        : Buffer.from(toUuidText(record.messageId)),
      value: frameRecord(envelope.schemaId, messageRecordCodec.encode(toStored(record))),
    };
  });
}

function toMessageRecord(
  { message, propertiesText, traitsText }: SourcedMessage,
  { environmentId, receivedAt, traceId }: RecordEnvelope,
  keyOf: KeyOf,
): MessageRecord {
  const { context = NO_CONTEXT, properties, traits } = message;
  const { owner, anonymous, user, from, to } = identitiesOf(message);
  const key = (identity: IdentityReference | null) =>
    identity === null ? ZERO_KEY : keyOf(identity.kind, identity.id);
  return {
    ...TEXTS,
    ...CONTEXT_TEXTS,
    ...message,
    ...context,
    environmentId,
    receivedAt,
    traceId,
    messageId: Buffer.from(message.messageId.replaceAll('-', ''), 'hex'),
    identityKey: key(owner),
    anonymousKey: key(anonymous),
    userKey: key(user),
    fromKey: key(from),
    toKey: key(to),
    test: message.test ?? false,
    screenDensity: context.screenDensity ?? null,
    properties: toJson(properties, propertiesText),
    traits: toJson(traits, traitsText),
  };
}

/** Replaces lone surrogates with U+FFFD: contract, "Lone surrogate". */
function toStored(record: MessageRecord): MessageRecord {
  const fields = Object.entries(record).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.toWellFormed() : value,
  ]);
  return Object.fromEntries(fields) as MessageRecord;
}

function toJson(value: object | undefined, asSent: string | undefined): string {
  return value === undefined ? '' : (asSent ?? JSON.stringify(value));
}
