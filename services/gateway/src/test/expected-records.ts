import {
  type EventContext,
  frameRecord,
  type IdentityKind,
  type Message,
  type MessageRecord,
  messageRecordCodec,
  ZERO_KEY,
} from '@playline/contracts';
import { isPlaceholder } from '@playline/people';
import type { EncodedRecord, RecordEnvelope } from '../record/encode-batch.ts';

/** Computes the 16-byte key of an identity; `id` is trimmed and not blank. The key is not modified later. */
export type KeyOf = (kind: IdentityKind, id: string) => Buffer;

/** An accepted message, with the source text of its free-form objects if the caller has it. */
export interface SourcedMessage {
  message: Message;
  /** JSON text; without it the object is written by JSON.stringify. */
  propertiesText?: string;
  /** JSON text; without it the object is written by JSON.stringify. */
  traitsText?: string;
}

const NO_CONTEXT: Partial<EventContext> = {};
/** Values stored for absent texts. */
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

/** An identity as a message names it; the id trimmed. */
export interface IdentityReference {
  kind: IdentityKind;
  id: string;
}

type IdFields = 'anonymousId' | 'userId' | 'identityType' | 'fromId' | 'fromType' | 'toId' | 'toType';

function referenceOf(kind: IdentityKind, id: string | undefined): IdentityReference | null {
  const trimmed = id?.trim() ?? '';
  return isPlaceholder(trimmed) ? null : { kind, id: trimmed };
}

/**
 * The identities of a message. An id without a type is `untyped`, except the own anonymous id as `fromId`. The owner is
 * the user, else the anonymous id.
 */
export function identitiesOf(message: Pick<Message, IdFields>) {
  const anonymous = referenceOf('anonymous', message.anonymousId);
  const user = referenceOf(message.identityType ?? 'untyped', message.userId);
  const isOwn = message.fromType === undefined && message.fromId?.trim() === anonymous?.id;
  const from = referenceOf(isOwn ? 'anonymous' : (message.fromType ?? 'untyped'), message.fromId);
  const to = referenceOf(message.toType ?? 'untyped', message.toId);
  return { owner: user ?? anonymous, anonymous, user, from, to };
}

/**
 * The records that the schema's own codec writes for parsed messages. The encoder of scanned bodies is compared with
 * them byte by byte.
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
      key: isOwned ? Buffer.concat([Buffer.from(envelope.environmentId), record.identityKey]) : null,
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
    properties: jsonText(properties, propertiesText),
    traits: jsonText(traits, traitsText),
  };
}

/** Replaces half a surrogate pair by U+FFFD: contract, "Half a surrogate pair". */
function toStored(record: MessageRecord): MessageRecord {
  const fields = Object.entries(record).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.toWellFormed() : value,
  ]);
  return Object.fromEntries(fields) as MessageRecord;
}

function jsonText(value: object | undefined, asSent: string | undefined): string {
  return value === undefined ? '' : (asSent ?? JSON.stringify(value));
}
