import {
  CONSENT_STATUSES,
  CONTEXT_CODE_POINTS_MAX,
  EVENT_AGE_MAX_MS,
  EVENT_AHEAD_MAX_MS,
  ID_CODE_POINTS_MAX,
  IDENTITY_TYPES,
  SURFACES,
} from '@playline/contracts';
import fc from 'fast-check';

/** The last code point before the surrogate range. */
const BEFORE_SURROGATES = 0xd7ff;
const SURROGATES = 0x800;
const LAST = 0x10ffff;

/** @throws Error if the string is not a single code point */
function toNumber(text: unknown): number {
  const point = typeof text === 'string' ? text.codePointAt(0) : undefined;
  if (point === undefined || String.fromCodePoint(point) !== text || !text.isWellFormed())
    throw new Error('not a code point');
  return point > BEFORE_SURROGATES ? point - SURROGATES : point;
}

/**
 * Any Unicode code point except surrogates, for use as `unit` of `fc.string`. The `binary` unit of fast-check takes
 * 124 MB and 1.3 s.
 */
export const codePoint = fc
  .integer({ min: 0, max: LAST - SURROGATES })
  .map((number) => String.fromCodePoint(number > BEFORE_SURROGATES ? number + SURROGATES : number), toNumber);

export type MessageJson = Record<string, unknown>;

const plain = fc.constantFrom(...'abcdefghij0123456789-_|');

/** Strings without lone surrogates, up to a maximum number of code points. */
const textUpTo = (maxLength: number) =>
  fc.oneof(
    { weight: 16, arbitrary: fc.string({ unit: plain, minLength: 1, maxLength: 24 }) },
    { weight: 2, arbitrary: fc.string({ maxLength: 24 }) },
    { weight: 1, arbitrary: fc.string({ unit: codePoint, maxLength: 24 }) },
    { weight: 1, arbitrary: fc.string({ unit: codePoint, minLength: maxLength, maxLength }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('', ' ', '\u3000', ' spaced ', 'Größe', 'レベル', '😀', '"\\/\n', '</script>'),
    },
  );
const id = textUpTo(ID_CODE_POINTS_MAX);
const requiredId = id.filter((value) => value.trim() !== '');
const object = fc.dictionary(fc.string({ maxLength: 12 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 6 });

/** Fields that may be present, null or absent. */
type Fields = Record<string, fc.Arbitrary<unknown>>;
const optional = (fields: Fields): fc.Arbitrary<MessageJson> =>
  fc.record(
    Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, fc.option(value, { nil: null, freq: 8 })])),
    { requiredKeys: [] },
  );

const { library, libraryVersion, ...optionalTexts } = CONTEXT_CODE_POINTS_MAX;
const required = (max: number) => textUpTo(max).filter((value) => value.trim() !== '');
const context: fc.Arbitrary<MessageJson> = fc
  .tuple(
    fc.record({ library: required(library), libraryVersion: required(libraryVersion) }),
    optional({
      ...Object.fromEntries(Object.entries(optionalTexts).map(([name, max]) => [name, textUpTo(max)])),
      screenDensity: fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constantFrom(1, 2.625, 3)),
    }),
  )
  .map(([mandatory, rest]) => ({ ...mandatory, ...rest }));

const optionalFields = optional({
  anonymousId: id,
  deviceId: id,
  sessionId: id,
  eventName: id,
  userId: id,
  fromId: id,
  toId: id,
  identityType: fc.constantFrom(...IDENTITY_TYPES),
  fromType: fc.constantFrom(...IDENTITY_TYPES),
  toType: fc.constantFrom(...IDENTITY_TYPES),
  surface: fc.constantFrom(...SURFACES),
  consentLevel: fc.constantFrom(...CONSENT_STATUSES),
  test: fc.boolean(),
  context,
  properties: object,
  traits: object,
});

const fieldsByType: fc.Arbitrary<MessageJson> = fc.oneof(
  fc.record({ type: fc.constant('track'), eventName: requiredId }),
  fc.record({ type: fc.constantFrom('page', 'screen') }),
  fc.record({ type: fc.constant('identify'), userId: requiredId }),
  fc
    .record({ type: fc.constant('alias'), fromId: requiredId, toId: requiredId })
    .filter(({ fromId, toId }) => fromId.trim() !== toId.trim()),
);

/** Messages that the contract accepts at `nowMs`. Optional fields are present, null or absent. */
export function validMessages(nowMs: number): fc.Arbitrary<MessageJson> {
  const timestamps = fc
    .tuple(
      fc.integer({ min: -EVENT_AGE_MAX_MS, max: EVENT_AHEAD_MAX_MS }),
      fc.constantFrom('Z', '0Z', '1234Z', '+00:00'),
    )
    .map(([offsetMs, end]) => new Date(nowMs + offsetMs).toISOString().replace('Z', end));
  return fc
    .tuple(fieldsByType, optionalFields, fc.record({ messageId: fc.uuid(), eventTimestamp: timestamps }))
    .map(([typeFields, rest, common]) => ({ ...rest, ...typeFields, ...common }));
}
