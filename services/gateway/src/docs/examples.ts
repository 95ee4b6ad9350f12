import {
  type Example,
  type ExampleAnswer,
  envelope,
  JSON_TYPE,
  placeholderOf,
  success,
  toText,
} from '@playline/api-docs';
import { BATCH_MESSAGES_MAX } from '@playline/contracts';
import { NO_MEMORY } from '@playline/http';

export interface DocsSettings {
  /** Without a trailing slash. */
  readonly publicUrl: string;
  readonly headerPrefix: string;
}

export interface ExampleContext extends DocsSettings {
  /** Epoch milliseconds of the events; a fixed time would soon be rejected. */
  readonly nowMs: number;
}

export type KeyKind = 'publishable' | 'secret';

/** Full: no memory for another body. Broken: the brokers acknowledge nothing. */
export type Situation = 'full' | 'broken';

export const KEY_OF: Readonly<Record<KeyKind, string>> = {
  publishable: placeholderOf('publishable'),
  secret: placeholderOf('secret'),
};

export function keyHeadersOf({ headerPrefix }: DocsSettings): Readonly<Record<KeyKind, string>> {
  return { publishable: `${headerPrefix}-publishable-key`, secret: `${headerPrefix}-api-key` };
}

export function headersWith(
  context: DocsSettings,
  kind: KeyKind,
  more: Record<string, string> = {},
): Record<string, string> {
  return { [keyHeadersOf(context)[kind]]: KEY_OF[kind], ...more };
}

export const MESSAGES_PATH = '/v1/audience/messages';
/** One id for each accepted message. */
const IDS = {
  track: '6f1c1f0e-8c2a-4e0b-9d5e-0c6a7b1d2e3f',
  identify: '0192f3a4-5b6c-7d8e-9f00-112233445566',
  alias: '0192f3a4-5b6c-7d8e-9f00-112233445577',
  partly: '9a4f2c1b-7d3e-4a5f-8b6c-1d2e3f4a5b6c',
  refused: 'c56a4180-65aa-42ec-a945-5fd21dec0538',
} as const;
const ANONYMOUS_ID = 'b2c7e4f0-visitor';

/** A message with one error. */
interface Refusal {
  readonly name: string;
  readonly title: string;
  readonly message: Record<string, unknown>;
  readonly error: { field: string; code: string; message: string };
}

const REFUSALS: readonly Refusal[] = [
  {
    name: 'missing-required-field',
    title: 'A track message without a name',
    message: { eventName: undefined },
    error: { field: 'eventName', code: 'MISSING_REQUIRED_FIELD', message: 'eventName is required' },
  },
  {
    name: 'invalid-enum',
    title: 'An unknown surface',
    message: { surface: 'console' },
    error: { field: 'surface', code: 'INVALID_ENUM', message: 'surface is not one of web, pixel, unity, unreal' },
  },
  {
    name: 'invalid-format',
    title: 'A messageId that is not a UUID',
    message: { messageId: 'level-7' },
    error: { field: 'messageId', code: 'INVALID_FORMAT', message: 'messageId is not a UUID' },
  },
  {
    name: 'invalid-value',
    title: 'An event from the year 2001',
    message: { eventTimestamp: '2001-01-01T00:00:00Z' },
    error: { field: 'eventTimestamp', code: 'INVALID_VALUE', message: 'eventTimestamp is too old' },
  },
  {
    name: 'unsupported-type',
    title: 'A message of an unknown type',
    message: { type: 'click' },
    error: {
      field: 'type',
      code: 'UNSUPPORTED_TYPE',
      message: 'type is not one of track, page, screen, identify, alias',
    },
  },
];

export function createMessagesExamples(context: ExampleContext): Example[] {
  const eventTimestamp = new Date(context.nowMs).toISOString();
  const track = {
    type: 'track',
    messageId: IDS.refused as string,
    eventTimestamp,
    anonymousId: ANONYMOUS_ID,
    eventName: 'level_complete',
    surface: 'web',
    properties: { level: 7, seconds: 93.5 },
  };
  const post = (messages: readonly unknown[], headers = headersWith(context, 'publishable', JSON_TYPE)) =>
    ({ method: 'POST', target: MESSAGES_PATH, headers, body: toText({ messages }) }) as const;
  const refused = REFUSALS.map(
    ({ name, title, message, error }): Example => ({
      name,
      title,
      request: post([{ ...track, ...message }]),
      answer: validated(0, 1, [{ messageId: message.messageId ?? IDS.refused, errors: [error] }]),
    }),
  );
  const duplicate = 'messageId occurs more than once in the batch';
  return [
    ...createTaken(track, post),
    ...refused,
    {
      name: 'duplicate-message-id',
      title: 'Two messages with the same id',
      request: post([track, { ...track, eventName: 'level_start' }]),
      answer: validated(0, 2, [
        {
          messageId: IDS.refused,
          errors: [{ field: 'messageId', code: 'DUPLICATE_MESSAGE_ID', message: duplicate }],
        },
      ]),
    },
    ...createRefusedBatches(context, (messages) => post(messages)),
    ...createKeyFaults(context, (headers) => post([track], headers)),
    ...createFaults(context, post([track])),
  ];
}

function validated(accepted: number, rejected: number, rejections: readonly unknown[]): ExampleAnswer {
  return success(accepted > 0 ? 200 : 400, { success: accepted > 0, accepted, rejected, rejections });
}

type Post = (messages: readonly unknown[]) => Example['request'];

function createTaken(track: Record<string, unknown>, post: Post): Example[] {
  const { eventTimestamp } = track;
  const identify = {
    type: 'identify',
    messageId: IDS.identify,
    eventTimestamp,
    anonymousId: ANONYMOUS_ID,
    userId: '76561198000000000',
    identityType: 'steam',
    traits: { plan: 'free' },
  };
  const alias = {
    type: 'alias',
    messageId: IDS.alias,
    eventTimestamp,
    fromId: '76561198000000000',
    fromType: 'steam',
    toId: 'player@game.example',
    toType: 'email',
  };
  const context = { library: 'playline-web', libraryVersion: '1.0.0', pageUrl: 'https://game.example/play' };
  return [
    {
      name: 'track',
      title: 'One event of a game',
      request: post([{ ...track, messageId: IDS.track, context }]),
      answer: validated(1, 0, []),
    },
    {
      name: 'identify-and-alias',
      title: 'A visitor signs in, and a second identity of the same person',
      request: post([identify, alias]),
      answer: validated(2, 0, []),
    },
    {
      name: 'partly-rejected',
      title: 'One valid message, one without a user',
      request: post([
        { ...track, messageId: IDS.partly },
        { type: 'identify', messageId: IDS.refused, eventTimestamp, anonymousId: ANONYMOUS_ID },
      ]),
      answer: validated(1, 1, [
        {
          messageId: IDS.refused,
          errors: [{ field: 'userId', code: 'MISSING_REQUIRED_FIELD', message: 'userId is required' }],
        },
      ]),
    },
  ];
}

function createFaults(context: ExampleContext, request: Example['request']): (Example & { situation: Situation })[] {
  return [
    {
      name: 'too-many-requests',
      title: 'The service has no memory for another body',
      situation: 'full',
      request,
      answer: envelope(context, 'TOO_MANY_REQUESTS_ERROR', { message: NO_MEMORY, headers: { 'retry-after': '1' } }),
    },
    {
      name: 'internal-server-error',
      title: 'The brokers do not acknowledge the batch',
      situation: 'broken',
      request,
      answer: envelope(context, 'INTERNAL_SERVER_ERROR'),
    },
  ];
}

function createRefusedBatches(context: ExampleContext, post: Post): Example[] {
  const fault = (name: string, title: string, rest: Pick<Example, 'request' | 'answer'>) => ({ name, title, ...rest });
  const answer = (message: string, details: Record<string, unknown> | null = null) =>
    envelope(context, 'VALIDATION_ERROR', { message, details });
  const batch = post([]);
  const withHeader = (header: Record<string, string>) => ({ ...batch, headers: { ...batch.headers, ...header } });
  return [
    fault('empty-batch', 'No message at all', {
      request: batch,
      answer: answer('messages is empty', { field: 'messages', messagesMin: 1, messagesMax: BATCH_MESSAGES_MAX }),
    }),
    fault('unreadable-json', 'Invalid JSON in the second message', {
      request: { ...batch, body: '{"messages": [{},\n  {"properties": {"fps": NaN}}]}' },
      answer: answer('The body is not valid UTF-8 JSON: unexpected NaN in line 2, column 26.', {
        offset: 43,
        line: 2,
        column: 26,
        messageIndex: 1,
        found: 'NaN',
      }),
    }),
    fault('wrong-content-type', 'A body that is not announced as JSON', {
      request: withHeader({ 'content-type': 'text/plain' }),
      answer: answer('The body must be application/json.', { header: 'content-type' }),
    }),
    fault('unknown-encoding', 'An unknown compression', {
      request: withHeader({ 'content-encoding': 'compress' }),
      answer: answer('The content encoding is not gzip, deflate, br or zstd.', { header: 'content-encoding' }),
    }),
    fault('broken-encoding', 'A body that is not compressed as announced', {
      request: withHeader({ 'content-encoding': 'gzip' }),
      answer: answer('The body is not readable as gzip.', { header: 'content-encoding' }),
    }),
  ];
}

function createKeyFaults(
  context: ExampleContext,
  post: (headers: Record<string, string>) => Example['request'],
): Example[] {
  const [header = ''] = Object.keys(headersWith(context, 'publishable'));
  return [
    {
      name: 'missing-key',
      title: 'No key',
      request: post(JSON_TYPE),
      answer: envelope(context, 'VALIDATION_ERROR', {
        message: `The header ${header} is missing.`,
        details: { header },
      }),
    },
    {
      name: 'unknown-key',
      title: 'An unknown key',
      request: post({ [header]: 'pk_unknown', ...JSON_TYPE }),
      answer: envelope(context, 'UNAUTHORISED_REQUEST', { details: { header } }),
    },
  ];
}

export const CONSENT_PATH = '/v1/audience/tracking-consent';

export function createReadConsentExamples(context: ExampleContext): Example[] {
  const headers = headersWith(context, 'publishable');
  const [header = ''] = Object.keys(headers);
  const get = (query: string) => ({ method: 'GET', target: CONSENT_PATH + query, headers, body: null }) as const;
  return [
    {
      name: 'consent-not-set',
      title: 'A visitor without a choice',
      request: get('?anonymousId=9d0c-visitor'),
      answer: success(200, { status: 'not_set' }),
    },
    {
      name: 'consent-without-id',
      title: 'No anonymousId',
      request: get(''),
      answer: envelope(context, 'VALIDATION_ERROR', {
        message: 'anonymousId is required',
        details: { field: 'anonymousId' },
      }),
    },
    {
      name: 'consent-unknown-key',
      title: 'An unknown key: this operation answers 400',
      request: { ...get(`?anonymousId=${ANONYMOUS_ID}`), headers: { [header]: 'pk_unknown' } },
      answer: envelope(context, 'VALIDATION_ERROR', { details: { header } }),
    },
  ];
}

export function createWriteConsentExamples(context: ExampleContext): Example[] {
  const headers = headersWith(context, 'publishable', JSON_TYPE);
  const put = (body: unknown) => ({ method: 'PUT', target: CONSENT_PATH, headers, body: toText(body) }) as const;
  return [
    {
      name: 'consent-given',
      title: 'A visitor agrees to everything',
      request: put({ anonymousId: ANONYMOUS_ID, status: 'full', source: 'cookie-banner' }),
      answer: success(204, null),
    },
    {
      name: 'consent-unset',
      title: 'not_set cannot be written',
      request: put({ anonymousId: ANONYMOUS_ID, status: 'not_set', source: 'cookie-banner' }),
      answer: envelope(context, 'VALIDATION_ERROR', {
        message: 'status is not one of none, anonymous, full',
        details: { field: 'status' },
      }),
    },
  ];
}

export const DATA_PATH = '/v1/audience/data';

export function createEraseExamples(context: ExampleContext): Example[] {
  const headers = headersWith(context, 'secret');
  const [header = ''] = Object.keys(headers);
  const erase = (query: string, own = headers) =>
    ({ method: 'DELETE', target: DATA_PATH + query, headers: own, body: null }) as const;
  return [
    {
      name: 'erase-visitor',
      title: 'Everything about a visitor',
      request: erase('?anonymousId=b2c7e4f0-visitor'),
      answer: success(202, null, {
        'x-erasure-id': '0192f3a4-5b6c-7d8e-9f00-112233445566',
        'x-erasure-identity': 'anonymousId=b2c7e4f0-visitor',
      }),
    },
    {
      name: 'erase-user',
      title: 'Everything about a user, of whichever identity type',
      request: erase('?userId=76561198000000000'),
      answer: success(202, null, {
        'x-erasure-id': '0192f3a4-5b6c-7d8e-9f00-112233445567',
        'x-erasure-identity': 'userId=76561198000000000',
      }),
    },
    {
      name: 'erase-both',
      title: 'Both identifiers',
      request: erase('?anonymousId=b2c7e4f0-visitor&userId=76561198000000000'),
      answer: envelope(context, 'VALIDATION_ERROR', { message: 'anonymousId or userId is required, and not both' }),
    },
    {
      name: 'erase-without-key',
      title: 'No key',
      request: erase('?userId=76561198000000000', {}),
      answer: envelope(context, 'VALIDATION_ERROR', {
        message: `The header ${header} is missing.`,
        details: { header },
      }),
    },
    {
      name: 'erase-with-publishable-key',
      title: 'A publishable key, which cannot erase',
      request: erase('?userId=76561198000000000', { [header]: KEY_OF.publishable }),
      answer: envelope(context, 'UNAUTHORISED_REQUEST', { details: { header } }),
    },
  ];
}
