import { randomUUID } from 'node:crypto';
import { codePoint } from '@playline/testkit/code-point';
import { validMessages } from '@playline/testkit/messages';
import fc from 'fast-check';

export interface FuzzBody {
  text: string;
  /** Null if the body is not a complete batch. */
  messages: unknown[] | null;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const FIELDS = [
  ...['type', 'messageId', 'eventTimestamp', 'anonymousId', 'deviceId', 'sessionId', 'eventName', 'userId'],
  ...['fromId', 'toId', 'identityType', 'fromType', 'toType', 'surface', 'consentLevel', 'test'],
  ...['context', 'properties', 'traits', 'library', 'userAgent', 'pageUrl', 'screenDensity'],
];
const UNUSUAL = ['\ud800', 'a\u0000b', '__proto__', 'x'.repeat(257), 1e308, -0, 5e-324, 1e21, '', ' ', null, [], {}];

const unusual = fc.oneof(fc.jsonValue(), fc.string({ unit: codePoint }), fc.constantFrom<unknown>(...UNUSUAL));
const change = fc.tuple(fc.oneof(fc.constantFrom(...FIELDS), fc.string()), unusual, fc.boolean());

function setField(target: object, name: string, value: unknown): void {
  // An assignment to `__proto__` would not create a field of that name.
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}

const nearlyValid = (nowMs: number): fc.Arbitrary<unknown> =>
  fc.tuple(validMessages(nowMs), fc.array(change, { minLength: 1, maxLength: 3 })).map(([message, changes]) => {
    const copy = structuredClone(message);
    const { context } = copy;
    for (const [name, value, inContext] of changes)
      setField(inContext && typeof context === 'object' && context !== null ? context : copy, name, value);
    return copy;
  });

/** Replaces a well-formed id with a new id, because only unique ids can match messages with rejections. */
function withNewId(message: unknown): unknown {
  return idOf(message) === null ? message : { ...(message as object), messageId: randomUUID() };
}

/** Returns a message's id if it is a UUID, otherwise null. */
export function idOf(message: unknown): string | null {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return null;
  const { messageId } = message as Record<string, unknown>;
  return typeof messageId === 'string' && UUID.test(messageId) ? messageId.toLowerCase() : null;
}

function toBody(batch: readonly unknown[]): FuzzBody {
  const messages = batch.map(withNewId);
  return { text: JSON.stringify({ messages }), messages };
}

export function fuzzBodies(nowMs: number): fc.Arbitrary<FuzzBody> {
  const sizes = { minLength: 1, maxLength: 100, size: '+1' } as const;
  const valid = validMessages(nowMs);
  const any = fc.oneof(
    { weight: 3, arbitrary: valid as fc.Arbitrary<unknown> },
    { weight: 4, arbitrary: nearlyValid(nowMs) },
    { weight: 1, arbitrary: fc.jsonValue() as fc.Arbitrary<unknown> },
  );
  const batch = fc.oneof(
    { weight: 6, arbitrary: fc.array(any, sizes) },
    { weight: 2, arbitrary: fc.array(valid as fc.Arbitrary<unknown>, sizes) },
  );
  const truncated = fc.tuple(batch, fc.nat()).map(([messages, length]) => {
    const { text } = toBody(messages);
    return { text: text.slice(0, length % text.length), messages: null };
  });
  return fc.oneof(
    { weight: 9, arbitrary: batch.map(toBody) },
    { weight: 1, arbitrary: fc.jsonValue().map((value) => ({ text: JSON.stringify(value), messages: null })) },
    { weight: 1, arbitrary: truncated },
  );
}
