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
import type { Message } from './messages.ts';

/** One way to break a message, and the exact errors of the answer (contract, "Rules of a message"). */
export interface Breakage {
  readonly name: string;
  /** Type of the valid message that is broken. */
  readonly type: 'track' | 'identify' | 'alias';
  readonly errors: readonly (readonly [field: string, code: RejectionCode])[];
  /** Elements of the batch as JSON text: one, or several with the same id. */
  toElements(message: Message, nowMs: number): string[];
  /** `messageId` of the rejection; by default the message's own. */
  echo?(message: Message): string;
}

type Errors = Breakage['errors'];

/** Gives members another value; `undefined` removes a member. */
function change(name: string, members: Message, errors: Errors): Breakage {
  return { name, type: 'track', errors, toElements: (message) => [JSON.stringify({ ...message, ...members })] };
}

function changeContext(name: string, members: Message, error: Errors[number]): Breakage {
  const toElements = (message: Message) => [
    JSON.stringify({ ...message, context: { ...(message.context as Message), ...members } }),
  ];
  return { name, type: 'track', errors: [error], toElements };
}

/** The same breakage of a message of another type. */
function ofType(type: Breakage['type'], breakage: Breakage): Breakage {
  return { ...breakage, type };
}

/** Breaks the message id itself; the answer repeats what was sent. */
function changeId(name: string, value: unknown, [code, echo]: readonly [RejectionCode, string]): Breakage {
  return { ...change(name, { messageId: value }, [['messageId', code]]), echo: () => echo };
}

/** Moves the time away from the server's clock. */
function shiftTime(name: string, shiftMs: number): Breakage {
  return {
    name,
    type: 'track',
    errors: [['eventTimestamp', 'INVALID_VALUE']],
    toElements: (message, nowMs) => [
      JSON.stringify({ ...message, eventTimestamp: new Date(nowMs + shiftMs).toISOString() }),
    ],
  };
}

const tooLong = (codePoints: number) => 'é'.repeat(codePoints + 1);
const MARGIN_MS = 60 * 60 * 1000;
/** Half of a surrogate pair: JSON can contain it as an escape, UTF-8 cannot. */
const LONE_SURROGATE = 'lone \ud83c';

const IDS: readonly (readonly [string, Breakage['type']])[] = [
  ['anonymousId', 'track'],
  ['deviceId', 'track'],
  ['sessionId', 'track'],
  ['eventName', 'track'],
  ['userId', 'identify'],
  ['fromId', 'alias'],
  ['toId', 'alias'],
];
const isPersonId = (field: string) => PERSON_IDS.some((id) => id === field);
const REQUIRED: readonly (readonly [string, Breakage['type']])[] = [
  ['type', 'track'],
  ['eventTimestamp', 'track'],
  ['eventName', 'track'],
  ['userId', 'identify'],
  ['fromId', 'alias'],
  ['toId', 'alias'],
];
const ENUMERATIONS: readonly (readonly [string, Breakage['type']])[] = [
  ['surface', 'track'],
  ['consentLevel', 'track'],
  ['identityType', 'identify'],
  ['fromType', 'alias'],
  ['toType', 'alias'],
];
const CONTEXT_STRINGS = Object.keys(CONTEXT_CODE_POINTS_MAX) as ContextString[];

const missing: readonly Breakage[] = REQUIRED.flatMap(([field, type]) => {
  const errors: Errors = [[field, 'MISSING_REQUIRED_FIELD']];
  return [
    ofType(type, change(`${field} missing`, { [field]: undefined }, errors)),
    ofType(type, change(`${field} null`, { [field]: null }, errors)),
    ofType(type, change(`${field} empty`, { [field]: '' }, errors)),
    ofType(type, change(`${field} blank`, { [field]: ' \t ' }, errors)),
  ];
});

const lengths: readonly Breakage[] = [
  ...IDS.map(([field, type]) =>
    ofType(type, change(`${field} too long`, { [field]: tooLong(ID_CODE_POINTS_MAX) }, [[field, 'INVALID_VALUE']])),
  ),
  ...CONTEXT_STRINGS.map((field) =>
    changeContext(`context.${field} too long`, { [field]: tooLong(CONTEXT_CODE_POINTS_MAX[field]) }, [
      `context.${field}`,
      'INVALID_VALUE',
    ]),
  ),
];

const shapes: readonly Breakage[] = [
  ...IDS.map(([field, type]) => ofType(type, change(`${field} a number`, { [field]: 7 }, [[field, 'INVALID_FORMAT']]))),
  ...IDS.filter(([field]) => isPersonId(field)).map(([field, type]) =>
    ofType(
      type,
      change(`${field} with half a surrogate pair`, { [field]: LONE_SURROGATE }, [[field, 'INVALID_FORMAT']]),
    ),
  ),
  ...ENUMERATIONS.map(([field, type]) =>
    ofType(type, change(`${field} unknown`, { [field]: 'toaster' }, [[field, 'INVALID_ENUM']])),
  ),
  ...ENUMERATIONS.map(([field, type]) =>
    ofType(type, change(`${field} a number`, { [field]: 1 }, [[field, 'INVALID_FORMAT']])),
  ),
  ...CONTEXT_STRINGS.map((field) =>
    changeContext(`context.${field} an object`, { [field]: {} }, [`context.${field}`, 'INVALID_FORMAT']),
  ),
  changeContext('context.screenDensity a string', { screenDensity: '2' }, ['context.screenDensity', 'INVALID_FORMAT']),
  changeContext('context.library missing', { library: undefined }, ['context.library', 'MISSING_REQUIRED_FIELD']),
  changeContext('context.library null', { library: null }, ['context.library', 'MISSING_REQUIRED_FIELD']),
  changeContext('context.library blank', { library: ' \t ' }, ['context.library', 'MISSING_REQUIRED_FIELD']),
  changeContext('context.library empty', { library: '' }, ['context.library', 'MISSING_REQUIRED_FIELD']),
  changeContext('context.libraryVersion empty', { libraryVersion: '' }, [
    'context.libraryVersion',
    'MISSING_REQUIRED_FIELD',
  ]),
  change('context a string', { context: 'web' }, [['context', 'INVALID_FORMAT']]),
  change('context an array', { context: [] }, [['context', 'INVALID_FORMAT']]),
  change('properties an array', { properties: [1, 2] }, [['properties', 'INVALID_FORMAT']]),
  ofType('identify', change('traits a string', { traits: 'vip' }, [['traits', 'INVALID_FORMAT']])),
  change('test a string', { test: 'true' }, [['test', 'INVALID_FORMAT']]),
  change('type unknown', { type: 'group' }, [['type', 'UNSUPPORTED_TYPE']]),
  change('type a number', { type: 3 }, [['type', 'INVALID_FORMAT']]),
];

const times: readonly Breakage[] = [
  ...[
    ['no offset', '2026-03-01T10:00:00.000'],
    ['a space for T', '2026-03-01 10:00:00Z'],
    ['30 February', '2026-02-30T10:00:00Z'],
    ['second 60', '2026-03-01T10:00:60Z'],
    ['ten digits of a second', '2026-03-01T10:00:00.1234567890Z'],
    ['words', 'yesterday evening'],
    ['a date', '2026-03-01'],
    ['epoch milliseconds', 1_772_359_200_000],
  ].map(([name, value]) =>
    change(`eventTimestamp: ${name}`, { eventTimestamp: value }, [['eventTimestamp', 'INVALID_FORMAT']]),
  ),
  shiftTime('eventTimestamp too old', -EVENT_AGE_MAX_MS - MARGIN_MS),
  shiftTime('eventTimestamp too far ahead', EVENT_AHEAD_MAX_MS + MARGIN_MS),
];

const element = (name: string, json: string): Breakage => ({
  name: `element ${name}`,
  type: 'track',
  errors: [['message', 'INVALID_FORMAT']],
  toElements: () => [json],
  echo: () => '',
});

const ids: readonly Breakage[] = [
  changeId('messageId missing', undefined, ['MISSING_REQUIRED_FIELD', '']),
  changeId('messageId null', null, ['MISSING_REQUIRED_FIELD', '']),
  changeId('messageId empty', '', ['MISSING_REQUIRED_FIELD', '']),
  changeId('messageId blank', '   ', ['MISSING_REQUIRED_FIELD', '   ']),
  changeId('messageId a number', 12_345, ['INVALID_FORMAT', '12345']),
  changeId('messageId an array', ['a', 1], ['INVALID_FORMAT', '["a",1]']),
  changeId('messageId not a UUID', 'level-1-started', ['INVALID_FORMAT', 'level-1-started']),
  changeId('messageId a UUID in braces', '{0191c2a0-0000-7000-8000-000000000000}', [
    'INVALID_FORMAT',
    '{0191c2a0-0000-7000-8000-000000000000}',
  ]),
];

const copies = (name: string, errors: Errors, toElements: Breakage['toElements']): Breakage => ({
  name: `messageId ${name}`,
  type: 'track',
  errors: [['messageId', 'DUPLICATE_MESSAGE_ID'], ...errors],
  toElements,
});

const duplicates: readonly Breakage[] = [
  copies('twice', [], (message) => [JSON.stringify(message), JSON.stringify(message)]),
  copies('three times', [], (message) => Array.from({ length: 3 }, () => JSON.stringify(message))),
  copies('twice in another case', [], (message) => [
    JSON.stringify(message),
    JSON.stringify({ ...message, messageId: String(message.messageId).toUpperCase() }),
  ]),
  copies('twice, one copy broken', [['eventName', 'MISSING_REQUIRED_FIELD']], (message) => [
    JSON.stringify(message),
    JSON.stringify({ ...message, eventName: '' }),
  ]),
];

const others: readonly Breakage[] = [
  {
    name: 'alias to itself',
    type: 'alias',
    errors: [['toId', 'INVALID_VALUE']],
    toElements: (message) => [JSON.stringify({ ...message, toId: ` ${message.fromId} ` })],
  },
  change('message too large', { properties: { blob: 'x'.repeat(MESSAGE_BYTES_MAX) } }, [['message', 'INVALID_VALUE']]),
  change('several mistakes', { eventName: null, surface: 'toaster', sessionId: tooLong(ID_CODE_POINTS_MAX), test: 1 }, [
    ['eventName', 'MISSING_REQUIRED_FIELD'],
    ['surface', 'INVALID_ENUM'],
    ['sessionId', 'INVALID_VALUE'],
    ['test', 'INVALID_FORMAT'],
  ]),
  element('null', 'null'),
  element('a string', '"track"'),
  element('an array', '[]'),
];

/** Every way to break one message. */
export const BREAKAGES: readonly Breakage[] = [
  ...missing,
  ...lengths,
  ...shapes,
  ...times,
  ...ids,
  ...duplicates,
  ...others,
];
