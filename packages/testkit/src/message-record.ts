import { randomBytes } from 'node:crypto';
import { type MessageRecord, ZERO_KEY } from '@playline/contracts';

/** Any moment that is not the present one. */
const THEN_MS = 1_790_000_000_000;
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
    eventTime: THEN_MS,
    receivedAt: THEN_MS,
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
