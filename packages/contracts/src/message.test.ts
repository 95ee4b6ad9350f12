import { validMessages } from '@playline/testkit/messages';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  CONSENT_STATUSES,
  CONTEXT_CODE_POINTS_MAX,
  EVENT_AGE_MAX_MS,
  EVENT_AHEAD_MAX_MS,
  IDENTITY_TYPES,
  REJECTION_CODES,
  SURFACES,
} from './limits.ts';
import {
  distinctErrors,
  errorEnvelopeSchema,
  eventContextSchema,
  messageSchema,
  parseMessage,
  rejectionErrorSchema,
  toRejectionErrors,
} from './message.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 12);
const WINDOW = { fromMs: NOW_MS - EVENT_AGE_MAX_MS, toMs: NOW_MS + EVENT_AHEAD_MAX_MS };
const CONTEXT = { library: 'web', libraryVersion: '1.0.0' };
const PAGE = {
  type: 'page',
  messageId: '0192f1c0-7b3a-7c4d-8e5f-000000000001',
  eventTimestamp: '2026-11-21T11:59:00Z',
};
const TRACK = { ...PAGE, type: 'track', eventName: 'jump' };
const IDENTIFY = { ...PAGE, type: 'identify', userId: 'u1' };
const ALIAS = { ...PAGE, type: 'alias', fromId: 'a', toId: 'b' };
const EMOJI = '😀';

/** Returns every error as `field code`, sorted; empty if the message is accepted. */
function findErrors(value: unknown): string[] {
  const parsed = parseMessage(value, WINDOW);
  return parsed.ok ? [] : parsed.errors.map(({ field, code }) => `${field} ${code}`).sort();
}

function parseValid(value: unknown) {
  const parsed = parseMessage(value, WINDOW);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.message;
}

type Row = [title: string, value: unknown, ...errors: string[]];

const rows: Row[] = [
  ['required per type: track without eventName', { ...PAGE, type: 'track' }, 'eventName MISSING_REQUIRED_FIELD'],
  ['required per type: identify without userId', { ...PAGE, type: 'identify' }, 'userId MISSING_REQUIRED_FIELD'],
  [
    'required per type: alias without fromId or toId',
    { ...PAGE, type: 'alias' },
    'fromId MISSING_REQUIRED_FIELD',
    'toId MISSING_REQUIRED_FIELD',
  ],
  ['required per type: screen requires no additional fields', { ...PAGE, type: 'screen' }],
  ['blank in a required field: eventName', { ...TRACK, eventName: ' \t' }, 'eventName MISSING_REQUIRED_FIELD'],
  ['blank in a required field: userId of identify', { ...IDENTIFY, userId: '\u3000' }, 'userId MISSING_REQUIRED_FIELD'],
  [
    'blank in a required field: eventTimestamp',
    { ...PAGE, eventTimestamp: '' },
    'eventTimestamp MISSING_REQUIRED_FIELD',
  ],
  [
    'blank in a required field: context.library',
    { ...PAGE, context: { ...CONTEXT, library: '' } },
    'context.library MISSING_REQUIRED_FIELD',
  ],
  [
    'a context requires library and libraryVersion',
    { ...PAGE, context: {} },
    'context.library MISSING_REQUIRED_FIELD',
    'context.libraryVersion MISSING_REQUIRED_FIELD',
  ],
  ['a context that is not an object', { ...PAGE, context: 'web' }, 'context INVALID_FORMAT'],
  [
    'empty strings in optional context fields',
    { ...PAGE, context: { ...CONTEXT, pageReferrer: '', pageTitle: '', userAgent: ' ' } },
  ],
  ['messageId: not a UUID', { ...PAGE, messageId: 'x' }, 'messageId INVALID_FORMAT'],
  ['messageId: a UUID in braces', { ...PAGE, messageId: `{${PAGE.messageId}}` }, 'messageId INVALID_FORMAT'],
  ['messageId: a UUID with a line break', { ...PAGE, messageId: `${PAGE.messageId}\n` }, 'messageId INVALID_FORMAT'],
  ['messageId: any version and case', { ...PAGE, messageId: 'FFFFFFFF-ffff-0FFF-FFFF-ffffffffffff' }],
  ['messageId: missing', { ...PAGE, messageId: undefined }, 'messageId MISSING_REQUIRED_FIELD'],
  ['messageId: blank', { ...PAGE, messageId: '  ' }, 'messageId MISSING_REQUIRED_FIELD'],
  ['messageId: a number', { ...PAGE, messageId: 7 }, 'messageId INVALID_FORMAT'],
  ['eventTimestamp: not RFC 3339', { ...PAGE, eventTimestamp: 'yesterday' }, 'eventTimestamp INVALID_FORMAT'],
  ['eventTimestamp: a number', { ...PAGE, eventTimestamp: NOW_MS }, 'eventTimestamp INVALID_FORMAT'],
  [
    'eventTimestamp: 7 fractional digits and an offset',
    { ...PAGE, eventTimestamp: '2026-11-21T13:13:36.2501234+02:00' },
  ],
  ['eventTimestamp: 30 February', { ...PAGE, eventTimestamp: '2026-02-30T00:00:00Z' }, 'eventTimestamp INVALID_FORMAT'],
  ['time window: exactly 30 days old', { ...PAGE, eventTimestamp: '2026-10-22T12:00:00Z' }],
  [
    'time window: older than 30 days',
    { ...PAGE, eventTimestamp: '2026-10-22T11:59:59.999Z' },
    'eventTimestamp INVALID_VALUE',
  ],
  ['time window: exactly 24 hours ahead', { ...PAGE, eventTimestamp: '2026-11-22T12:00:00Z' }],
  [
    'time window: more than 24 hours ahead',
    { ...PAGE, eventTimestamp: '2026-11-22T12:00:00.001Z' },
    'eventTimestamp INVALID_VALUE',
  ],
  ['type: unknown', { ...PAGE, type: 'group' }, 'type UNSUPPORTED_TYPE'],
  ['type: missing', { ...PAGE, type: undefined }, 'type MISSING_REQUIRED_FIELD'],
  ['type: a number', { ...PAGE, type: 1 }, 'type INVALID_FORMAT'],
  ['wrong JSON type: an array as properties', { ...PAGE, properties: [] }, 'properties INVALID_FORMAT'],
  ['wrong JSON type: a string as traits', { ...PAGE, traits: '{}' }, 'traits INVALID_FORMAT'],
  ['wrong JSON type: a string as test', { ...PAGE, test: 'true' }, 'test INVALID_FORMAT'],
  [
    'wrong JSON type: a string as screenDensity',
    { ...PAGE, context: { ...CONTEXT, screenDensity: '2' } },
    'context.screenDensity INVALID_FORMAT',
  ],
  [
    'a number too large for a double',
    JSON.parse(JSON.stringify({ ...PAGE, context: { ...CONTEXT, screenDensity: 9 } }).replace('9}', '1e999}')),
    'context.screenDensity INVALID_VALUE',
  ],
  ['alias: both ids equal', { ...ALIAS, toId: 'a' }, 'toId INVALID_VALUE'],
  [
    'alias: ids that are equal after trimming but have different types',
    { ...ALIAS, toId: ' a\u00a0', fromType: 'steam', toType: 'email' },
    'toId INVALID_VALUE',
  ],
  ['alias: ids that differ only in case are different', { ...ALIAS, toId: 'A' }],
  ['equal fromId and toId in a page message', { ...PAGE, fromId: 'a', toId: 'a' }],
  ['the format of an id is not checked', { ...IDENTIFY, userId: 'no e-mail', identityType: 'email' }],
  ['message is not an object: null', null, 'message INVALID_FORMAT'],
  ['message is not an object: an array', [PAGE], 'message INVALID_FORMAT'],
  ['message is not an object: a string', 'page', 'message INVALID_FORMAT'],
  ['unknown fields are ignored', { ...PAGE, colour: 'red', context: { ...CONTEXT, ip: [] } }],
  [
    'null in a required context field',
    { ...PAGE, context: { ...CONTEXT, library: null } },
    'context.library MISSING_REQUIRED_FIELD',
  ],
  ['length in code points: 256 emoji', { ...TRACK, eventName: EMOJI.repeat(256) }],
  ['length in code points: 257 emoji', { ...TRACK, eventName: EMOJI.repeat(257) }, 'eventName INVALID_VALUE'],
  ['lone surrogate in an id', { ...PAGE, anonymousId: 'a\ud800' }, 'anonymousId INVALID_FORMAT'],
  [
    'lone surrogate in a string that is not an id',
    { ...TRACK, eventName: 'a\ud800', context: { ...CONTEXT, pageTitle: '\udc00' } },
  ],
  ['lone surrogate in an enumeration', { ...PAGE, surface: '\ud800' }, 'surface INVALID_FORMAT'],
  ['lone surrogate in properties is not checked', { ...PAGE, properties: { a: '\ud800' } }],
  [
    'every error of a message is listed',
    { ...TRACK, messageId: 'x', eventName: '', surface: 'tv', context: { library: 'l', locale: 4 } },
    'context.libraryVersion MISSING_REQUIRED_FIELD',
    'context.locale INVALID_FORMAT',
    'eventName MISSING_REQUIRED_FIELD',
    'messageId INVALID_FORMAT',
    'surface INVALID_ENUM',
  ],
  [
    'the time window is checked even if other fields are invalid',
    { ...PAGE, eventTimestamp: '2020-01-01T00:00:00Z', test: 1 },
    'eventTimestamp INVALID_VALUE',
    'test INVALID_FORMAT',
  ],
  [
    'rules that compare fields are checked even if other fields are invalid',
    { ...ALIAS, toId: 'a', messageId: 1 },
    'messageId INVALID_FORMAT',
    'toId INVALID_VALUE',
  ],
];

it.each(rows.map(([title, value, ...errors]) => ({ title, value, errors })))(
  'parseMessage follows the contract: $title',
  ({ value, errors }) => {
    expect(findErrors(value)).toEqual(errors);
  },
);

describe.each(['anonymousId', 'deviceId', 'sessionId', 'userId', 'fromId', 'toId'])('the optional id %s', (name) => {
  it.each(['', '  ', null])('counts as absent if it is %j', (blank) => {
    expect(parseValid({ ...PAGE, [name]: blank })).not.toHaveProperty(name);
  });
  it('is stored as sent, including spaces', () => {
    expect(parseValid({ ...PAGE, [name]: ' x ' })).toHaveProperty(name, ' x ');
  });
});

it.each([
  ...['anonymousId', 'deviceId', 'sessionId', 'eventName', 'userId', 'fromId', 'toId'].map(
    (name) => [name, 256] as const,
  ),
])('a message accepts %s with up to %i characters', (name, max) => {
  expect(findErrors({ ...PAGE, [name]: 'é'.repeat(max) })).toEqual([]);
  expect(findErrors({ ...PAGE, [name]: 'é'.repeat(max + 1) })).toEqual([`${name} INVALID_VALUE`]);
  expect(findErrors({ ...PAGE, [name]: {} })).toEqual([`${name} INVALID_FORMAT`]);
});

it.each(Object.entries(CONTEXT_CODE_POINTS_MAX))(
  'a message accepts context.%s with up to %i characters',
  (name, max) => {
    expect(findErrors({ ...PAGE, context: { ...CONTEXT, [name]: 'é'.repeat(max) } })).toEqual([]);
    expect(findErrors({ ...PAGE, context: { ...CONTEXT, [name]: 'é'.repeat(max + 1) } })).toEqual([
      `context.${name} INVALID_VALUE`,
    ]);
    expect(findErrors({ ...PAGE, context: { ...CONTEXT, [name]: 1 } })).toEqual([`context.${name} INVALID_FORMAT`]);
  },
);

it.each([
  ['surface', SURFACES],
  ['consentLevel', CONSENT_STATUSES],
  ['identityType', IDENTITY_TYPES],
  ['fromType', IDENTITY_TYPES],
  ['toType', IDENTITY_TYPES],
])('a message accepts only enumeration values as %s', (name, values) => {
  for (const value of values) expect(findErrors({ ...PAGE, [name]: value })).toEqual([]);
  for (const value of ['', 'Web', 'other', values[0]?.toUpperCase()]) {
    expect(findErrors({ ...PAGE, [name]: value })).toEqual([`${name} INVALID_ENUM`]);
  }
  expect(findErrors({ ...PAGE, [name]: 3 })).toEqual([`${name} INVALID_FORMAT`]);
});

it('null counts as absent in every optional field of a message', () => {
  const optional = Object.keys(messageSchema.shape).filter((name) => !(name in PAGE));
  const message = parseValid({ ...Object.fromEntries(optional.map((name) => [name, null])), ...PAGE });
  expect(message).toEqual({ ...PAGE, eventTime: Date.UTC(2026, 10, 21, 11, 59) });
  const inContext = Object.keys(eventContextSchema.shape).map((name) => [name, null]);
  expect(parseValid({ ...PAGE, context: { ...Object.fromEntries(inContext), ...CONTEXT } }).context).toEqual(CONTEXT);
});

it('a message may have fields with the names of built-in JavaScript properties', () => {
  expect(
    findErrors(JSON.parse(JSON.stringify(PAGE).replace('{', '{"__proto__":{"test":1},"constructor":1,"toString":2,'))),
  ).toEqual([]);
});

it('parseMessage keeps every key of a free-form object, and messageSchema does not copy the object', () => {
  const properties = JSON.parse('{"__proto__":{"a":1},"constructor":2}');
  expect(JSON.stringify(parseValid({ ...PAGE, properties }).properties)).toBe(JSON.stringify(properties));
  expect(messageSchema.parse({ ...PAGE, properties }).properties).toBe(properties);
});

it.each(Object.keys(messageSchema.shape))(
  'parseMessage rejects a very deeply nested %s without overflowing the stack',
  (name) => {
    const nested = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000));
    expect(findErrors({ ...PAGE, [name]: nested })).toContain(`${name} INVALID_FORMAT`);
  },
);

it('parseMessage accepts every valid message and returns its values', () => {
  fc.assert(
    fc.property(validMessages(NOW_MS), (value) => {
      const message: Record<string, unknown> = { ...parseValid(value) };
      for (const [name, sent] of Object.entries(value)) {
        if (name === 'context' || message[name] === undefined) continue;
        expect(message[name]).toEqual(sent);
      }
    }),
  );
});

it('parseMessage never throws, regardless of the values of a message, and lists each error once', () => {
  fc.assert(
    fc.property(
      validMessages(NOW_MS),
      fc.constantFrom(...Object.keys(messageSchema.shape)),
      fc.jsonValue(),
      (value, name, replacement) => {
        const parsed = parseMessage({ ...value, [name]: replacement }, WINDOW);
        const fields = parsed.ok ? [] : parsed.errors.map(({ field, code }) => `${field} ${code}`);
        expect(new Set(fields).size).toBe(fields.length);
      },
    ),
  );
});

it('messageSchema produces the OpenAPI schema of a message', () => {
  const document = z.toJSONSchema(messageSchema, { io: 'input', reused: 'inline' });
  const { Message, EventContext } = document.$defs ?? {};
  expect(document.$ref).toBe('#/$defs/Message');
  expect(Message?.required).toEqual(['type', 'messageId', 'eventTimestamp']);
  expect(EventContext?.required).toEqual(['library', 'libraryVersion']);
  expect(EventContext?.properties?.library).toMatchObject({ type: 'string', maxLength: 256 });
  expect(Message?.properties?.messageId).toMatchObject({ type: 'string', format: 'uuid' });
  expect(Message?.properties?.eventTimestamp).toMatchObject({ type: 'string', format: 'date-time' });
  expect(Message?.properties?.traits).toMatchObject({ type: ['object', 'null'] });
  expect(Message?.properties?.userId).toMatchObject({ anyOf: [{ type: 'string', maxLength: 256 }, { type: 'null' }] });
});

function toCodes(schema: z.ZodType, value: unknown): string[] {
  const issues = schema.safeParse(value, { reportInput: true }).error?.issues ?? [];
  return toRejectionErrors(issues).map(({ field, code }) => `${field} ${code}`);
}

it('toRejectionErrors uses the code of a custom issue', () => {
  const schema = z.object({ a: z.string().refine(() => false, { params: { code: 'DUPLICATE_MESSAGE_ID' } }) });
  expect(toCodes(schema, { a: 'x' })).toEqual(['a DUPLICATE_MESSAGE_ID']);
});

it('toRejectionErrors returns INVALID_VALUE for any other violated rule', () => {
  expect(toCodes(z.object({ a: z.string().refine(() => false, { params: { code: 'NO_SUCH' } }) }), { a: '' })).toEqual([
    'a INVALID_VALUE',
  ]);
  expect(toCodes(z.object({ a: z.string().max(1) }), { a: 'xx' })).toEqual(['a INVALID_VALUE']);
});

it('toRejectionErrors names nested fields with a dot and removes duplicates', () => {
  const schema = z.object({ a: z.object({ b: z.string().max(1).max(2) }) });
  expect(toCodes(schema, { a: { b: 'xxx' } })).toEqual(['a.b INVALID_VALUE']);
});

it('toRejectionErrors converts every issue to an error that follows the contract, for any value', () => {
  const schema = z.object({ type: z.enum(['a']), b: z.number(), c: z.object({ d: z.string() }) });
  fc.assert(
    fc.property(fc.anything(), fc.anything(), (type, d) => {
      const parsed = schema.safeParse({ type, c: { d } }, { reportInput: true });
      const errors = toRejectionErrors(parsed.error?.issues ?? []);
      expect(errors.length).toBeGreaterThan(0);
      for (const error of errors) {
        expect(rejectionErrorSchema.parse(error)).toEqual(error);
        expect(REJECTION_CODES).toContain(error.code);
      }
    }),
  );
});

it('distinctErrors removes an error only if both its field and its code are duplicates', () => {
  const error = (field: string, code: (typeof REJECTION_CODES)[number]) => ({ field, code, message: '' });
  const errors = [error('a', 'INVALID_VALUE'), error('a', 'INVALID_FORMAT'), error('b', 'INVALID_VALUE')];
  expect(distinctErrors([...errors, ...errors])).toEqual(errors);
});

it('errorEnvelopeSchema requires all five fields, and details may be null', () => {
  const envelope = { message: 'm', link: 'l', trace_id: 't', code: 'VALIDATION_ERROR', details: null };
  expect(errorEnvelopeSchema.parse(envelope)).toEqual(envelope);
  for (const name of Object.keys(envelope)) {
    expect(errorEnvelopeSchema.safeParse({ ...envelope, [name]: undefined }).success).toBe(false);
  }
});
