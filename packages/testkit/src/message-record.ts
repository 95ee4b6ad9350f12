import { randomBytes, randomUUID } from 'node:crypto';
import { type MessageRecord, ZERO_KEY } from '@playline/contracts';

const RECEIVED_MS = 1_790_000_000_000;
/** Each field contains its own name, so that tests detect swapped columns. */
const STRING_FIELDS = (
  'anonymousId userId identityType fromId fromType toId toType deviceId sessionId surface consentLevel library ' +
  'libraryVersion userAgent locale timezone screen pageUrl pagePath pageReferrer pageTitle browserLanguage ' +
  'properties traits traceId'
).split(' ');

/** Creates a track message record with a new id and no person. */
export function messageRecordOf(eventName: string, changes: Partial<MessageRecord> = {}): MessageRecord {
  return {
    ...Object.fromEntries(STRING_FIELDS.map((field) => [field, field])),
    environmentId: 'test-log',
    type: 'track',
    eventName,
    eventTime: RECEIVED_MS,
    receivedAt: RECEIVED_MS,
    messageId: randomBytes(16),
    identityKey: ZERO_KEY,
    anonymousKey: ZERO_KEY,
    userKey: ZERO_KEY,
    fromKey: ZERO_KEY,
    toKey: ZERO_KEY,
    test: false,
    screenDensity: null,
    ...changes,
  } as unknown as MessageRecord;
}

/** A message as JSON, valid or invalid. */
export type SmallMessage = Record<string, unknown> & { readonly messageId: string };

const required: Readonly<Record<string, () => Record<string, unknown>>> = {
  track: () => ({ eventName: 'level_started' }),
  identify: () => ({ userId: `user-${randomUUID()}` }),
  alias: () => ({ fromId: `from-${randomUUID()}`, toId: `to-${randomUUID()}` }),
};

/** Creates a minimal valid message with a new id. @param fields overrides; undefined removes a field */
export function smallMessage(type: string, fields: Readonly<Record<string, unknown>> = {}): SmallMessage {
  const common = { type, messageId: randomUUID(), eventTimestamp: new Date().toISOString() };
  return { ...common, ...required[type]?.(), ...fields };
}
