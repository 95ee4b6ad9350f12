import { type Example, type ExampleAnswer, envelope, JSON_TYPE, success, toText } from '@playline/api-docs';
import { BATCH_MESSAGES_MAX } from '@playline/contracts';
import { NO_MEMORY } from '@playline/http';
import { type ExampleContext, headersWith, type Situation } from './context.ts';

const TARGET = '/v1/audience/messages';
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
    error: {
      field: 'surface',
      code: 'INVALID_ENUM',
      message: 'surface is not one of web, pixel, unity, unreal',
    },
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
    ({ method: 'POST', target: TARGET, headers, body: toText({ messages }) }) as const;
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
  const fault = (name: string, title: string, rest: Pick<Example, 'request' | 'answer'>): Example => ({
    name,
    title,
    ...rest,
  });
  const answer = (message: string, details: Record<string, unknown> | null = null) =>
    envelope(context, 'VALIDATION_ERROR', { message, details });
  const batch = post([]);
  const withHeader = (header: Record<string, string>) => ({ ...batch, headers: { ...batch.headers, ...header } });
  return [
    fault('empty-batch', 'No message at all', {
      request: batch,
      answer: answer('messages is empty', {
        field: 'messages',
        messagesMin: 1,
        messagesMax: BATCH_MESSAGES_MAX,
      }),
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
