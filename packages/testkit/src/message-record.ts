import { randomBytes, randomUUID } from 'node:crypto';
import { type MessageRecord, ZERO_KEY } from '@playline/contracts';

/** Any moment that is not the present one. */
const RECEIVED_MS = 1_790_000_000_000;
/** Each holds its own name, so that a row shows a column that took another's. */
const TEXTS = (
  'anonymousId userId identityType fromId fromType toId toType deviceId sessionId surface consentLevel library ' +
  'libraryVersion userAgent locale timezone screen pageUrl pagePath pageReferrer pageTitle browserLanguage ' +
  'properties traits traceId'
).split(' ');

/** A record of a track message that nobody owns, with an id of its own. */
export function messageRecordOf(eventName: string, changes: Partial<MessageRecord> = {}): MessageRecord {
  return {
    ...Object.fromEntries(TEXTS.map((field) => [field, field])),
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

/** A message as a client sends it: any JSON, right or wrong. */
export type SmallMessage = Record<string, unknown> & { readonly messageId: string };

/** What a type needs besides what all types need. */
const needed: Readonly<Record<string, () => Record<string, unknown>>> = {
  track: () => ({ eventName: 'level_started' }),
  identify: () => ({ userId: `user-${randomUUID()}` }),
  alias: () => ({ fromId: `from-${randomUUID()}`, toId: `to-${randomUUID()}` }),
};

/**
 * The least that the contract asks of a message, under an id of its own and at the present time.
 * @param fields are added, replace a field, or (with undefined) remove it
 */
export function smallMessage(type: string, fields: Readonly<Record<string, unknown>> = {}): SmallMessage {
  const all = { type, messageId: randomUUID(), eventTimestamp: new Date().toISOString() };
  return { ...all, ...needed[type]?.(), ...fields };
}
