import {
  type DocsSource,
  type Example,
  type ExampleResponse,
  envelope,
  JSON_TYPE,
  placeholderOf,
  success,
  toText,
} from '@playline/api-docs';
import { BATCH_MESSAGES_MAX, toDurationText } from '@playline/contracts';
import { NO_MEMORY } from '@playline/http';
import { DEFAULT_LIMITS, type DocsLimits } from './messages.ts';

export interface DocsSettings {
  /** Without a trailing slash. */
  readonly publicUrl: string;
  readonly headerPrefix: string;
  /** Public URL of the chain API; absent if there is none. */
  readonly chainApiUrl?: string | undefined;
  /** ClickHouse URL for analysts; absent if the documentation names none. */
  readonly clickhouseUrl?: string | undefined;
  /** The values that the documentation states. Default: the defaults of the settings. */
  readonly limits?: DocsLimits;
  readonly downloads?: DocsSource['downloads'];
}

export interface ExampleContext extends DocsSettings {
  /** Time of the example events in epoch milliseconds. A fixed time would soon be too old to be accepted. */
  readonly nowMs: number;
}

export type KeyKind = 'publishable' | 'secret';

/** `full`: no memory is left for another request body. `broken`: the brokers acknowledge no records. */
export type Situation = 'full' | 'broken';

export const DOCS_KEYS: Readonly<Record<KeyKind, string>> = {
  publishable: placeholderOf('publishable'),
  secret: placeholderOf('secret'),
};

export function getKeyHeaderNames({ headerPrefix }: DocsSettings): Readonly<Record<KeyKind, string>> {
  return { publishable: `${headerPrefix}-publishable-key`, secret: `${headerPrefix}-api-key` };
}

export function createHeaders(
  context: DocsSettings,
  kind: KeyKind,
  extra: Record<string, string> = {},
): Record<string, string> {
  return { [getKeyHeaderNames(context)[kind]]: DOCS_KEYS[kind], ...extra };
}

export const MESSAGES_PATH = '/v1/audience/messages';
const MESSAGE_IDS = {
  track: '6f1c1f0e-8c2a-4e0b-9d5e-0c6a7b1d2e3f',
  identify: '0192f3a4-5b6c-7d8e-9f00-112233445566',
  alias: '0192f3a4-5b6c-7d8e-9f00-112233445577',
  partial: '9a4f2c1b-7d3e-4a5f-8b6c-1d2e3f4a5b6c',
  rejected: 'c56a4180-65aa-42ec-a945-5fd21dec0538',
} as const;
const ANONYMOUS_ID = 'b2c7e4f0-visitor';

/** A change to a valid message that causes exactly one error. */
interface RejectionExample {
  readonly name: string;
  readonly title: string;
  readonly message: Record<string, unknown>;
  readonly error: { field: string; code: string; message: string };
}

const createRejectionExamples = ({ limits = DEFAULT_LIMITS }: DocsSettings): readonly RejectionExample[] => [
  {
    name: 'missing-required-field',
    title: 'A track message without an event name',
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
    title: 'An event from 2001',
    message: { eventTimestamp: '2001-01-01T00:00:00Z' },
    error: {
      field: 'eventTimestamp',
      code: 'INVALID_VALUE',
      message: `eventTimestamp is more than ${toDurationText(limits.EVENT_AGE_MAX_MS)} old`,
    },
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
    messageId: MESSAGE_IDS.rejected as string,
    eventTimestamp,
    anonymousId: ANONYMOUS_ID,
    eventName: 'level_complete',
    surface: 'web',
    properties: { level: 7, seconds: 93.5 },
  };
  const post = (messages: readonly unknown[], headers = createHeaders(context, 'publishable', JSON_TYPE)) =>
    ({ method: 'POST', target: MESSAGES_PATH, headers, body: toText({ messages }) }) as const;
  const rejected = createRejectionExamples(context).map(
    ({ name, title, message, error }): Example => ({
      name,
      title,
      fixedFields: Object.keys(message),
      request: post([{ ...track, ...message }]),
      response: batchResponse(0, 1, [{ messageId: message.messageId ?? MESSAGE_IDS.rejected, errors: [error] }]),
    }),
  );
  const duplicate = 'messageId occurs more than once in the batch';
  return [
    ...createAcceptedBatches(track, post),
    ...rejected,
    {
      name: 'duplicate-message-id',
      title: 'Two messages with the same id',
      request: post([track, { ...track, eventName: 'level_start' }]),
      response: batchResponse(0, 2, [
        {
          messageId: MESSAGE_IDS.rejected,
          errors: [{ field: 'messageId', code: 'DUPLICATE_MESSAGE_ID', message: duplicate }],
        },
      ]),
    },
    ...createInvalidBatches(context, (messages) => post(messages)),
    ...createKeyErrors(context, (headers) => post([track], headers)),
    ...createServerErrors(context, post([track])),
  ];
}

function batchResponse(accepted: number, rejected: number, rejections: readonly unknown[]): ExampleResponse {
  return success(accepted > 0 ? 200 : 400, { success: accepted > 0, accepted, rejected, rejections });
}

type Post = (messages: readonly unknown[]) => Example['request'];

function createAcceptedBatches(track: Record<string, unknown>, post: Post): Example[] {
  const { eventTimestamp } = track;
  const identify = {
    type: 'identify',
    messageId: MESSAGE_IDS.identify,
    eventTimestamp,
    anonymousId: ANONYMOUS_ID,
    userId: '76561198000000000',
    identityType: 'steam',
    traits: { plan: 'free' },
  };
  const alias = {
    type: 'alias',
    messageId: MESSAGE_IDS.alias,
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
      title: 'A track event',
      request: post([{ ...track, messageId: MESSAGE_IDS.track, context }]),
      response: batchResponse(1, 0, []),
    },
    {
      name: 'identify-and-alias',
      title: 'A visitor signs in and links a second identity',
      request: post([identify, alias]),
      response: batchResponse(2, 0, []),
    },
    {
      name: 'partly-rejected',
      title: 'One valid message and one without a user id',
      request: post([
        { ...track, messageId: MESSAGE_IDS.partial },
        { type: 'identify', messageId: MESSAGE_IDS.rejected, eventTimestamp, anonymousId: ANONYMOUS_ID },
      ]),
      response: batchResponse(1, 1, [
        {
          messageId: MESSAGE_IDS.rejected,
          errors: [{ field: 'userId', code: 'MISSING_REQUIRED_FIELD', message: 'userId is required' }],
        },
      ]),
    },
  ];
}

function createServerErrors(
  context: ExampleContext,
  request: Example['request'],
): (Example & { situation: Situation })[] {
  return [
    {
      name: 'too-many-requests',
      title: 'The service has no memory for another request body',
      situation: 'full',
      request,
      response: envelope(context, 'TOO_MANY_REQUESTS_ERROR', { message: NO_MEMORY, headers: { 'retry-after': '1' } }),
    },
    {
      name: 'internal-server-error',
      title: 'The brokers do not acknowledge the batch',
      situation: 'broken',
      request,
      response: envelope(context, 'INTERNAL_SERVER_ERROR'),
    },
  ];
}

function createInvalidBatches(context: ExampleContext, post: Post): Example[] {
  const example = (name: string, title: string, rest: Omit<Example, 'name' | 'title'>) => ({ name, title, ...rest });
  const validationError = (message: string, details: Record<string, unknown> | null = null) =>
    envelope(context, 'VALIDATION_ERROR', { message, details });
  const encodingError = (message: string) => validationError(message, { header: 'content-encoding' });
  const batch = post([]);
  const withHeader = (header: Record<string, string>) => ({ ...batch, headers: { ...batch.headers, ...header } });
  return [
    example('empty-batch', 'An empty batch', {
      request: batch,
      response: validationError('messages is empty', {
        field: 'messages',
        messagesMin: 1,
        messagesMax: BATCH_MESSAGES_MAX,
      }),
    }),
    example('unreadable-json', 'Invalid JSON in the second message', {
      request: { ...batch, body: '{"messages": [{},\n  {"properties": {"fps": NaN}}]}' },
      response: validationError('The body is not valid UTF-8 JSON: unexpected NaN in line 2, column 26.', {
        offset: 43,
        line: 2,
        column: 26,
        messageIndex: 1,
        found: 'NaN',
      }),
    }),
    example('wrong-content-type', 'A content type other than JSON', {
      request: withHeader({ 'content-type': 'text/plain' }),
      response: validationError('The body must be application/json.', { header: 'content-type' }),
    }),
    example('unknown-encoding', 'An unsupported content encoding', {
      request: withHeader({ 'content-encoding': 'compress' }),
      response: encodingError('The content encoding is not gzip, deflate, br or zstd.'),
    }),
    example('broken-encoding', 'A body that is not valid gzip', {
      request: withHeader({ 'content-encoding': 'gzip' }),
      response: encodingError('The body is not readable as gzip.'),
    }),
  ];
}

function createKeyErrors(
  context: ExampleContext,
  post: (headers: Record<string, string>) => Example['request'],
): Example[] {
  const [header = ''] = Object.keys(createHeaders(context, 'publishable'));
  return [
    {
      name: 'missing-key',
      title: 'A request without a key',
      request: post(JSON_TYPE),
      response: envelope(context, 'VALIDATION_ERROR', {
        message: `The header ${header} is missing.`,
        details: { header },
      }),
    },
    {
      name: 'unknown-key',
      title: 'An unknown key',
      request: post({ [header]: 'pk_unknown', ...JSON_TYPE }),
      response: envelope(context, 'UNAUTHORISED_REQUEST', { details: { header } }),
    },
  ];
}

export const CONSENT_PATH = '/v1/audience/tracking-consent';

export function createReadConsentExamples(context: ExampleContext): Example[] {
  const headers = createHeaders(context, 'publishable');
  const [header = ''] = Object.keys(headers);
  const get = (query: string) => ({ method: 'GET', target: CONSENT_PATH + query, headers, body: null }) as const;
  return [
    {
      name: 'consent-not-set',
      title: 'A visitor who has not chosen yet',
      request: get('?anonymousId=9d0c-visitor'),
      response: success(200, { status: 'not_set' }),
    },
    {
      name: 'consent-without-id',
      title: 'A request without anonymousId',
      request: get(''),
      response: envelope(context, 'VALIDATION_ERROR', {
        message: 'anonymousId is required',
        details: { field: 'anonymousId' },
      }),
    },
    {
      name: 'consent-unknown-key',
      title: 'An unknown key, which returns 400 for this operation',
      request: { ...get(`?anonymousId=${ANONYMOUS_ID}`), headers: { [header]: 'pk_unknown' } },
      response: envelope(context, 'VALIDATION_ERROR', { details: { header } }),
    },
  ];
}

export function createWriteConsentExamples(context: ExampleContext): Example[] {
  const headers = createHeaders(context, 'publishable', JSON_TYPE);
  const put = (body: unknown) => ({ method: 'PUT', target: CONSENT_PATH, headers, body: toText(body) }) as const;
  return [
    {
      name: 'consent-given',
      title: 'A visitor gives full consent',
      request: put({ anonymousId: ANONYMOUS_ID, status: 'full', source: 'cookie-banner' }),
      response: success(204, null),
    },
    {
      name: 'consent-unset',
      title: 'The status not_set, which is read-only',
      request: put({ anonymousId: ANONYMOUS_ID, status: 'not_set', source: 'cookie-banner' }),
      response: envelope(context, 'VALIDATION_ERROR', {
        message: 'status is not one of none, anonymous, full',
        details: { field: 'status' },
      }),
    },
  ];
}

export const DATA_PATH = '/v1/audience/data';

export function createEraseExamples(context: ExampleContext): Example[] {
  const headers = createHeaders(context, 'secret');
  const [header = ''] = Object.keys(headers);
  const erase = (query: string, sent = headers) =>
    ({ method: 'DELETE', target: DATA_PATH + query, headers: sent, body: null }) as const;
  return [
    {
      name: 'erase-visitor',
      title: 'Erase a visitor',
      request: erase('?anonymousId=b2c7e4f0-visitor'),
      response: success(202, null, {
        'x-erasure-id': '0192f3a4-5b6c-7d8e-9f00-112233445566',
        'x-erasure-identity': 'anonymousId=b2c7e4f0-visitor',
      }),
    },
    {
      name: 'erase-user',
      title: 'Erase a user id under every identity type',
      request: erase('?userId=76561198000000000'),
      response: success(202, null, {
        'x-erasure-id': '0192f3a4-5b6c-7d8e-9f00-112233445567',
        'x-erasure-identity': 'userId=76561198000000000',
      }),
    },
    {
      name: 'erase-both',
      title: 'A request with both identifiers',
      request: erase('?anonymousId=b2c7e4f0-visitor&userId=76561198000000000'),
      response: envelope(context, 'VALIDATION_ERROR', {
        message: 'Exactly one of anonymousId and userId is required.',
      }),
    },
    {
      name: 'erase-without-key',
      title: 'A request without a key',
      request: erase('?userId=76561198000000000', {}),
      response: envelope(context, 'VALIDATION_ERROR', {
        message: `The header ${header} is missing.`,
        details: { header },
      }),
    },
    {
      name: 'erase-with-publishable-key',
      title: 'A publishable key instead of a secret key',
      request: erase('?userId=76561198000000000', { [header]: DOCS_KEYS.publishable }),
      response: envelope(context, 'UNAUTHORISED_REQUEST', { details: { header } }),
    },
  ];
}
