import {
  CONTEXT_CODE_POINTS_MAX,
  type ContextString,
  EVENT_AGE_MAX_MS,
  EVENT_AHEAD_MAX_MS,
  ID_CODE_POINTS_MAX,
  MESSAGE_BYTES_MAX,
  PERSON_IDS,
  type RejectionCode,
} from '@playline/contracts';
import type { Message } from './players.ts';

/** A way to make a message invalid. `errors` are the exact errors in the response. */
export interface Violation {
  readonly name: string;
  readonly type: 'track' | 'identify' | 'alias';
  readonly errors: readonly (readonly [field: string, code: RejectionCode])[];
  /** Returns batch elements as JSON. If there are several, they have the same id. */
  toElements(message: Message, nowMs: number): string[];
  /** Returns the rejection's `messageId`; default: the message's id. */
  echo?(message: Message): string;
}

type Errors = Violation['errors'];
type Type = Violation['type'];

function change(name: string, members: Message, errors: Errors, type: Type = 'track'): Violation {
  return { name, type, errors, toElements: (message) => [JSON.stringify({ ...message, ...members })] };
}

const changeField = (field: string, type: Type, how: string, [value, code]: readonly [unknown, RejectionCode]) =>
  change(`${field} ${how}`, { [field]: value }, [[field, code]], type);

function changeContext(field: string, how: string, [value, code]: readonly [unknown, RejectionCode]): Violation {
  const toElements = (message: Message) => [
    JSON.stringify({ ...message, context: { ...(message.context as Message), [field]: value } }),
  ];
  return { name: `context.${field} ${how}`, type: 'track', errors: [[`context.${field}`, code]], toElements };
}

function changeId(how: string, value: unknown, [code, echo]: readonly [RejectionCode, string]): Violation {
  return { ...changeField('messageId', 'track', how, [value, code]), echo: () => echo };
}

const shiftTime = (how: string, shiftMs: number): Violation => ({
  name: `eventTimestamp ${how}`,
  type: 'track',
  errors: [['eventTimestamp', 'INVALID_VALUE']],
  toElements: (message, nowMs) => [
    JSON.stringify({ ...message, eventTimestamp: new Date(nowMs + shiftMs).toISOString() }),
  ],
});

const tooLong = (codePoints: number) => 'é'.repeat(codePoints + 1);
const MARGIN_MS = 60 * 60 * 1000;
/** A lone surrogate is valid as a JSON escape, but not in UTF-8. */
const LONE_SURROGATE = 'lone \ud83c';

type Fields = readonly (readonly [string, Type])[];
const LINK_IDS: Fields = [
  ['userId', 'identify'],
  ['fromId', 'alias'],
  ['toId', 'alias'],
];
const IDS: Fields = [
  ['anonymousId', 'track'],
  ['deviceId', 'track'],
  ['sessionId', 'track'],
  ['eventName', 'track'],
  ...LINK_IDS,
];
const REQUIRED: Fields = [['type', 'track'], ['eventTimestamp', 'track'], ['eventName', 'track'], ...LINK_IDS];
const ENUMERATIONS: Fields = [
  ['surface', 'track'],
  ['consentLevel', 'track'],
  ['identityType', 'identify'],
  ['fromType', 'alias'],
  ['toType', 'alias'],
];
const isPersonId = (field: string) => PERSON_IDS.some((id) => id === field);
const CONTEXT_STRINGS = Object.keys(CONTEXT_CODE_POINTS_MAX) as ContextString[];
const BLANKS: readonly (readonly [string, unknown])[] = [
  ['missing', undefined],
  ['null', null],
  ['empty', ''],
  ['blank', ' \t '],
];

const missing: readonly Violation[] = REQUIRED.flatMap(([field, type]) =>
  BLANKS.map(([how, value]) => changeField(field, type, how, [value, 'MISSING_REQUIRED_FIELD'])),
);

const lengths: readonly Violation[] = [
  ...IDS.map(([field, type]) => changeField(field, type, 'too long', [tooLong(ID_CODE_POINTS_MAX), 'INVALID_VALUE'])),
  ...CONTEXT_STRINGS.map((field) =>
    changeContext(field, 'too long', [tooLong(CONTEXT_CODE_POINTS_MAX[field]), 'INVALID_VALUE']),
  ),
];

const shapes: readonly Violation[] = [
  ...IDS.map(([field, type]) => changeField(field, type, 'a number', [7, 'INVALID_FORMAT'])),
  ...IDS.filter(([field]) => isPersonId(field)).map(([field, type]) =>
    changeField(field, type, 'with a lone surrogate', [LONE_SURROGATE, 'INVALID_FORMAT']),
  ),
  ...ENUMERATIONS.map(([field, type]) => changeField(field, type, 'unknown', ['toaster', 'INVALID_ENUM'])),
  ...ENUMERATIONS.map(([field, type]) => changeField(field, type, 'a number', [1, 'INVALID_FORMAT'])),
  ...CONTEXT_STRINGS.map((field) => changeContext(field, 'an object', [{}, 'INVALID_FORMAT'])),
  changeContext('screenDensity', 'a string', ['2', 'INVALID_FORMAT']),
  ...['missing', 'null', 'blank', 'empty'].map((how) =>
    changeContext('library', how, [new Map(BLANKS).get(how), 'MISSING_REQUIRED_FIELD']),
  ),
  changeContext('libraryVersion', 'empty', ['', 'MISSING_REQUIRED_FIELD']),
  changeField('context', 'track', 'a string', ['web', 'INVALID_FORMAT']),
  changeField('context', 'track', 'an array', [[], 'INVALID_FORMAT']),
  changeField('properties', 'track', 'an array', [[1, 2], 'INVALID_FORMAT']),
  changeField('traits', 'identify', 'a string', ['vip', 'INVALID_FORMAT']),
  changeField('test', 'track', 'a string', ['true', 'INVALID_FORMAT']),
  changeField('type', 'track', 'unknown', ['group', 'UNSUPPORTED_TYPE']),
  changeField('type', 'track', 'a number', [3, 'INVALID_FORMAT']),
];

const times: readonly Violation[] = [
  ...[
    ['without offset', '2026-03-01T10:00:00.000'],
    ['with a space for T', '2026-03-01 10:00:00Z'],
    ['on 30 February', '2026-02-30T10:00:00Z'],
    ['with second 60', '2026-03-01T10:00:60Z'],
    ['with ten fractional digits', '2026-03-01T10:00:00.1234567890Z'],
    ['as free text', 'yesterday evening'],
    ['a date', '2026-03-01'],
    ['epoch milliseconds', 1_772_359_200_000],
  ].map(([how, value]) => changeField('eventTimestamp', 'track', String(how), [value, 'INVALID_FORMAT'])),
  shiftTime('too old', -EVENT_AGE_MAX_MS - MARGIN_MS),
  shiftTime('too far ahead', EVENT_AHEAD_MAX_MS + MARGIN_MS),
];

const element = (name: string, json: string): Violation => ({
  name: `element ${name}`,
  type: 'track',
  errors: [['message', 'INVALID_FORMAT']],
  toElements: () => [json],
  echo: () => '',
});

const BRACED_ID = '{0191c2a0-0000-7000-8000-000000000000}';
const ids: readonly Violation[] = [
  changeId('missing', undefined, ['MISSING_REQUIRED_FIELD', '']),
  changeId('null', null, ['MISSING_REQUIRED_FIELD', '']),
  changeId('empty', '', ['MISSING_REQUIRED_FIELD', '']),
  changeId('blank', '   ', ['MISSING_REQUIRED_FIELD', '   ']),
  changeId('a number', 12_345, ['INVALID_FORMAT', '12345']),
  changeId('an array', ['a', 1], ['INVALID_FORMAT', '["a",1]']),
  changeId('not a UUID', 'level-1-started', ['INVALID_FORMAT', 'level-1-started']),
  changeId('a UUID in braces', BRACED_ID, ['INVALID_FORMAT', BRACED_ID]),
];

/** Repeats a message with the same id. @param changes returns the fields to change, for each copy */
const copies = (how: string, changes: readonly ((message: Message) => Message)[], errors: Errors = []): Violation => ({
  name: `messageId ${how}`,
  type: 'track',
  errors: [['messageId', 'DUPLICATE_MESSAGE_ID'], ...errors],
  toElements: (message) => changes.map((changed) => JSON.stringify({ ...message, ...changed(message) })),
});
const unchanged = () => ({});

const duplicates: readonly Violation[] = [
  copies('twice', [unchanged, unchanged]),
  copies('three times', [unchanged, unchanged, unchanged]),
  copies('twice, once in upper case', [unchanged, ({ messageId }) => ({ messageId: String(messageId).toUpperCase() })]),
  copies('twice, one copy invalid', [unchanged, () => ({ eventName: '' })], [['eventName', 'MISSING_REQUIRED_FIELD']]),
];

const otherViolations: readonly Violation[] = [
  {
    name: 'alias to itself',
    type: 'alias',
    errors: [['toId', 'INVALID_VALUE']],
    toElements: (message) => [JSON.stringify({ ...message, toId: ` ${message.fromId} ` })],
  },
  change('message too large', { properties: { blob: 'x'.repeat(MESSAGE_BYTES_MAX) } }, [['message', 'INVALID_VALUE']]),
  change('several errors', { eventName: null, surface: 'toaster', sessionId: tooLong(ID_CODE_POINTS_MAX), test: 1 }, [
    ['eventName', 'MISSING_REQUIRED_FIELD'],
    ['surface', 'INVALID_ENUM'],
    ['sessionId', 'INVALID_VALUE'],
    ['test', 'INVALID_FORMAT'],
  ]),
  element('null', 'null'),
  element('a string', '"track"'),
  element('an array', '[]'),
];

export const VIOLATIONS: readonly Violation[] = [
  ...missing,
  ...lengths,
  ...shapes,
  ...times,
  ...ids,
  ...duplicates,
  ...otherViolations,
];
