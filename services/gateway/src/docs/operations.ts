import {
  type AnswerSpec,
  createAnswer,
  createRateLimitHeaders,
  type HeaderSpec,
  type JsonSchema,
  type Operation,
  type Parameter,
  RETRY_AFTER,
  toSizeText,
  withHeaders,
} from '@playline/api-docs';
import {
  BATCH_BYTES_MAX,
  BATCH_MESSAGES_MAX,
  CONSENT_SOURCE_CODE_POINTS_MAX,
  CONSENT_STATUSES,
  ID_CODE_POINTS_MAX,
  MESSAGE_BYTES_MAX,
  messagesRequestSchema,
  messagesResponseSchema,
  REQUIRED_BY_TYPE,
} from '@playline/contracts';
import { z } from 'zod';
import {
  CONSENT_PATH,
  createEraseExamples,
  createMessagesExamples,
  createReadConsentExamples,
  createWriteConsentExamples,
  DATA_PATH,
  type ExampleContext,
  type KeyKind,
  MESSAGES_PATH,
} from './examples.ts';

/** White space as `\s` of the pattern language. */
const NOT_BLANK = '\\S';

/** Contract, "Subject". */
const identifierSchema = z.string().meta({ minLength: 1, maxLength: ID_CODE_POINTS_MAX, pattern: NOT_BLANK });

/** Contract, "TrackingConsent". */
const trackingConsentSchema = z.object({ status: z.enum(CONSENT_STATUSES) }).meta({ id: 'TrackingConsent' });

/** Contract, "UpdateTrackingConsentRequest". */
const updateTrackingConsentSchema = z
  .object({
    anonymousId: identifierSchema,
    status: z.enum(CONSENT_STATUSES).exclude(['not_set']),
    source: z.string().meta({ minLength: 1, maxLength: CONSENT_SOURCE_CODE_POINTS_MAX, pattern: NOT_BLANK }),
  })
  .meta({ id: 'UpdateTrackingConsentRequest' });

const ERASURE_ID: HeaderSpec = {
  name: 'x-erasure-id',
  description: 'Finds the receipt of the erasure.',
  schema: { type: 'string', pattern: '^[0-9a-f-]{36}$' },
};

const ERASURE_IDENTITY: HeaderSpec = {
  name: 'x-erasure-identity',
  description:
    'The identity that the service read, percent-encoded, such as `userId=bob%2Bx%40example.org`. Compare it with the id that you meant: a `+` in a query is a space, so send it as `%2B`.',
  schema: { type: 'string', pattern: '^(anonymousId|userId)=.+$' },
};

const RATE_LIMIT = createRateLimitHeaders(
  'units',
  'A batch counts as many units as it has messages, or as it has KiB, as sent or after decompression, where those are more.',
);

const INVALID = createAnswer(400, 'The request is not valid.', { codes: ['VALIDATION_ERROR'] });
const INVALID_OR_KEY = createAnswer(400, 'The request is not valid, or its key is not.', {
  codes: ['VALIDATION_ERROR'],
});
const UNAUTHORISED = createAnswer(401, 'The key is not valid for this operation.', { codes: ['UNAUTHORISED_REQUEST'] });
const TOO_MANY = createAnswer(429, 'Too many requests at the moment; send the same request again later.', {
  codes: ['TOO_MANY_REQUESTS_ERROR'],
  headers: [RETRY_AFTER],
});
const FAILED = createAnswer(500, 'The service failed; send the same request again, with the same message ids.', {
  codes: ['INTERNAL_SERVER_ERROR'],
});

const limited = (answers: readonly AnswerSpec[]): AnswerSpec[] => withHeaders(answers, RATE_LIMIT);

const withKey = (kind: KeyKind) => [{ kind, required: true }] as const;

const inQuery = (name: string, required: boolean, description: string): Parameter => ({
  name,
  in: 'query',
  required,
  description,
  schema: identifierSchema,
});

/** Every operation of the gateway. */
export function createOperations(context: ExampleContext): Operation[] {
  return [
    createIngest(context),
    {
      id: 'getTrackingConsent',
      method: 'GET',
      path: CONSENT_PATH,
      summary: 'Get tracking consent',
      description: ['Returns the consent of an anonymous identity; `not_set` when none was written.'],
      keys: withKey('publishable'),
      confirmation: null,
      parameters: [inQuery('anonymousId', true, 'The anonymous identity.')],
      body: null,
      paging: null,
      answers: limited([
        createAnswer(200, 'The consent of this identity.', { schema: trackingConsentSchema }),
        INVALID_OR_KEY,
        TOO_MANY,
        FAILED,
      ]),
      examples: createReadConsentExamples(context),
    },
    {
      id: 'updateTrackingConsent',
      method: 'PUT',
      path: CONSENT_PATH,
      summary: 'Update tracking consent',
      description: ['Sets the consent of an anonymous identity. A read that begins after the 204 sees it.'],
      keys: withKey('publishable'),
      confirmation: null,
      parameters: [],
      body: {
        description: 'The anonymous identity, its consent, and where it was given.',
        schema: updateTrackingConsentSchema,
        fresh: null,
      },
      paging: null,
      answers: limited([createAnswer(204, 'The consent is stored.'), INVALID_OR_KEY, TOO_MANY, FAILED]),
      examples: createWriteConsentExamples(context),
    },
    createErase(context),
  ];
}

/** Of the 400 to a batch whose messages were all rejected. */
const NOTHING_ACCEPTED = { properties: { success: { const: false }, accepted: { const: 0 } } };

function createIngest(context: ExampleContext): Operation {
  return {
    id: 'ingestMessages',
    method: 'POST',
    path: MESSAGES_PATH,
    summary: 'Ingest messages',
    description: [
      `Takes a batch of 1 to ${BATCH_MESSAGES_MAX} messages and validates each separately. The answer is sent after every accepted message is stored in the log.`,
      'Send a batch again, with the same message ids, only after a 429, a 500 or a connection that broke: nothing is stored twice. Never resend it after another 4xx.',
      `A batch may have ${toSizeText(BATCH_BYTES_MAX)} after decompression, a message ${toSizeText(MESSAGE_BYTES_MAX)}. The body may be compressed: \`content-encoding\` gzip, deflate, br or zstd, one of them.`,
      'An id that is a placeholder, such as `null` or `n/a`, is stored and owns nothing: the event belongs to its other id. An `alias` without `fromType` from its own `anonymousId` links that anonymous identity with `toId`.',
    ],
    keys: withKey('publishable'),
    confirmation: null,
    parameters: [],
    body: {
      description:
        'Invalid messages are rejected one by one and do not fail the batch. Unknown members are ignored; null in an optional member means absent.',
      schema: messagesRequestSchema,
      fresh: {
        ids: ['messageId'],
        times: ['eventTimestamp'],
        hint: 'Each Send creates a new `messageId` and time. After a 429 or a 500 the same ones are sent again, as every client must do. Those that you type are kept.',
      },
    },
    paging: null,
    answers: limited([
      createAnswer(200, 'At least one message was accepted; `rejections` names the others.', {
        schema: messagesResponseSchema,
      }),
      createAnswer(
        400,
        'The request is not valid (envelope), or every message was rejected (MessagesResponse). If the body is not JSON in UTF-8, `details` has `offset`, `line`, `column`, `found`, and `messageIndex` inside of a message.',
        {
          schema: messagesResponseSchema,
          narrowed: NOTHING_ACCEPTED,
          codes: ['VALIDATION_ERROR'],
        },
      ),
      UNAUTHORISED,
      TOO_MANY,
      FAILED,
    ]),
    examples: createMessagesExamples(context),
  };
}

function createErase(context: ExampleContext): Operation {
  return {
    id: 'eraseData',
    method: 'DELETE',
    path: DATA_PATH,
    summary: 'Erase data for an identity',
    description: [
      'Requests the erasure of one person: the given identity and every identity linked to it. The erasure follows the answer.',
      'Give exactly one of the two identifiers. The operation needs the secret key, which only servers may have.',
      'Percent-encode the id: an unencoded `+` means a space, as in forms. An unknown identity is answered with 202 too, so compare `x-erasure-identity` with the id that you meant.',
    ],
    keys: withKey('secret'),
    confirmation: {
      prompt: 'Erase this person?',
      consequence:
        'The request covers everything about this identity and every identity linked to it. It cannot be undone.',
      confirmLabel: 'Erase',
    },
    parameters: [
      inQuery('anonymousId', false, 'The anonymous identity to erase. Not together with userId.'),
      inQuery('userId', false, 'The user to erase, in every identity type. Not together with anonymousId.'),
    ],
    body: null,
    paging: null,
    answers: limited([
      createAnswer(202, 'The request is recorded; erasure follows.', { headers: [ERASURE_ID, ERASURE_IDENTITY] }),
      INVALID,
      UNAUTHORISED,
      TOO_MANY,
      FAILED,
    ]),
    examples: createEraseExamples(context),
  };
}

/** Adds the rules that the contract checks in code: not blank, and required per type. */
export function refineSchemas(schemas: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> {
  const { EventContext, Message } = schemas;
  return {
    ...schemas,
    EventContext: withNotBlank(EventContext ?? {}, ['library', 'libraryVersion']),
    Message: { ...Message, allOf: createRulesByType() },
  };
}

function withNotBlank(schema: JsonSchema, names: readonly string[]): JsonSchema {
  const properties = { ...(schema.properties as Record<string, JsonSchema>) };
  for (const name of names) properties[name] = { ...properties[name], pattern: NOT_BLANK };
  return { ...schema, properties };
}

/** Contract, "Required per type". */
function createRulesByType(): JsonSchema[] {
  return REQUIRED_BY_TYPE.map(({ type, field }) => ({
    if: { properties: { type: { const: type } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { required: [field], properties: { [field]: { type: 'string', pattern: NOT_BLANK } } },
  }));
}
