import type { MessageRecord } from '@playline/contracts';
import fc from 'fast-check';

const key = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes));
const edges = fc.constantFrom(0, 1, 63, 64, 127, 128, 8191, 8192, 16_383, 16_384, 20_000).map((n) => 'x'.repeat(n));
const text = fc.oneof(
  { weight: 8, arbitrary: fc.string({ unit: 'grapheme', maxLength: 80 }) },
  { weight: 1, arbitrary: edges },
);
/** Times in the range of DateTime64(3), often close to the present. */
const time = fc.oneof(
  fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 }),
  fc.constantFrom(0, 1, 10_413_791_999_999),
);

/** Arbitrary records that the codec can encode and that fit into a row. */
export const arbitraryRecord: fc.Arbitrary<MessageRecord> = fc.record({
  environmentId: text,
  type: text,
  eventName: text,
  eventTime: time,
  receivedAt: time,
  messageId: key,
  identityKey: key,
  anonymousKey: key,
  userKey: key,
  fromKey: key,
  toKey: key,
  anonymousId: text,
  userId: text,
  identityType: text,
  fromId: text,
  fromType: text,
  toId: text,
  toType: text,
  deviceId: text,
  sessionId: text,
  surface: text,
  consentLevel: text,
  test: fc.boolean(),
  library: text,
  libraryVersion: text,
  userAgent: text,
  locale: text,
  timezone: text,
  screen: text,
  screenDensity: fc.oneof(fc.constant(null), fc.double({ noNaN: true })),
  pageUrl: text,
  pagePath: text,
  pageReferrer: text,
  pageTitle: text,
  browserLanguage: text,
  properties: text,
  traits: text,
  traceId: text,
});
