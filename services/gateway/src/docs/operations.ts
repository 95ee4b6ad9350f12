import {
  createRateLimitHeaders,
  createResponse,
  type HeaderSpec,
  type JsonSchema,
  type Operation,
  type Parameter,
  RETRY_AFTER,
  type ResponseSpec,
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

/** Pattern for a string with at least one character that is not white space. */
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
  description: 'Identifies the erasure and its receipt.',
  schema: { type: 'string', pattern: '^[0-9a-f-]{36}$' },
};

const ERASURE_IDENTITY: HeaderSpec = {
  name: 'x-erasure-identity',
  description:
    'The identity as the service parsed it, percent-encoded, such as `userId=bob%2Bx%40example.org`. Check that this is the identity you meant to erase: an unencoded `+` in a query string is read as a space, so send it as `%2B`.',
  schema: { type: 'string', pattern: '^(anonymousId|userId)=.+$' },
};

const RATE_LIMIT = createRateLimitHeaders(
  'units',
  'A batch costs one unit per message or per KiB (as sent or after decompression), whichever is highest.',
);

const INVALID = createResponse(400, 'The request is not valid.', { codes: ['VALIDATION_ERROR'] });
const INVALID_OR_KEY = createResponse(400, 'The request or its key is not valid.', { codes: ['VALIDATION_ERROR'] });
const WRONG_KEY = createResponse(401, 'The key is not valid for this operation.', { codes: ['UNAUTHORISED_REQUEST'] });
const TOO_MANY = createResponse(429, 'Too many requests. Retry the same request later.', {
  codes: ['TOO_MANY_REQUESTS_ERROR'],
  headers: [RETRY_AFTER],
});
const FAILED = createResponse(500, 'The service failed. Retry the same request with the same message ids.', {
  codes: ['INTERNAL_SERVER_ERROR'],
});

const withRateLimit = (responses: readonly ResponseSpec[]): ResponseSpec[] => withHeaders(responses, RATE_LIMIT);

const requireKey = (kind: KeyKind) => [{ kind, required: true }] as const;

const createQueryParameter = (name: string, required: boolean, description: string): Parameter => ({
  name,
  in: 'query',
  required,
  description,
  schema: identifierSchema,
});

export function createOperations(context: ExampleContext): Operation[] {
  return [
    createIngest(context),
    {
      id: 'getTrackingConsent',
      method: 'GET',
      path: CONSENT_PATH,
      summary: 'Get tracking consent',
      description: ['Returns the tracking consent of an anonymous identity, or `not_set` if none is stored.'],
      keys: requireKey('publishable'),
      confirmation: null,
      parameters: [createQueryParameter('anonymousId', true, 'The anonymous identity.')],
      body: null,
      paging: null,
      responses: withRateLimit([
        createResponse(200, 'The tracking consent of the identity.', { schema: trackingConsentSchema }),
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
      description: [
        'Sets the tracking consent of an anonymous identity. A GET after the 204 response returns the new status.',
      ],
      keys: requireKey('publishable'),
      confirmation: null,
      parameters: [],
      body: {
        description: 'The anonymous identity, its consent status, and where consent was given.',
        schema: updateTrackingConsentSchema,
        refreshedFields: null,
      },
      paging: null,
      responses: withRateLimit([createResponse(204, 'The consent is stored.'), INVALID_OR_KEY, TOO_MANY, FAILED]),
      examples: createWriteConsentExamples(context),
    },
    createErase(context),
  ];
}

/** Narrows the schema of the 400 response: the service rejected every message. */
const NOTHING_ACCEPTED = { properties: { success: { const: false }, accepted: { const: 0 } } };

function createIngest(context: ExampleContext): Operation {
  return {
    id: 'ingestMessages',
    method: 'POST',
    path: MESSAGES_PATH,
    summary: 'Ingest messages',
    description: [
      `Accepts a batch of 1 to ${BATCH_MESSAGES_MAX} messages and validates each message separately. The response is sent once every accepted message is stored in the log.`,
      'Resend a batch only after a 429, a 500 or a broken connection. Keep its message ids, so that no message is stored twice. Do not resend a batch after any other 4xx.',
      `A batch can be up to ${toSizeText(BATCH_BYTES_MAX)} after decompression, and a single message up to ${toSizeText(MESSAGE_BYTES_MAX)}. The body can be compressed with gzip, deflate, br or zstd; name the encoding in \`content-encoding\`.`,
      'A placeholder id, such as `null` or `n/a`, is stored but never identifies a person: the event belongs to the other id in the message. If an `alias` has no `fromType` and its `fromId` equals its `anonymousId`, the anonymous identity is linked to `toId`.',
    ],
    keys: requireKey('publishable'),
    confirmation: null,
    parameters: [],
    body: {
      description:
        'Invalid messages are rejected individually and do not fail the batch. Unknown fields are ignored. An optional field that is null counts as absent.',
      schema: messagesRequestSchema,
      refreshedFields: {
        ids: ['messageId'],
        times: ['eventTimestamp'],
        hint: 'The Send button creates a new `messageId` and `eventTimestamp` for each request. After a 429 or a 500, it resends the previous values, as every client must. It does not change values that you enter.',
      },
    },
    paging: null,
    responses: withRateLimit([
      createResponse(200, 'At least one message was accepted. `rejections` lists the rejected messages.', {
        schema: messagesResponseSchema,
      }),
      createResponse(
        400,
        'The request is not valid (error envelope), or every message was rejected (MessagesResponse). If the body is not UTF-8 JSON, `details` contains `offset`, `line`, `column` and `found`, and `messageIndex` if the error is inside a message.',
        { schema: messagesResponseSchema, constraints: NOTHING_ACCEPTED, codes: ['VALIDATION_ERROR'] },
      ),
      WRONG_KEY,
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
      'Requests the erasure of one person: the specified identity and every identity linked to it. The response does not wait for the erasure to complete.',
      'Specify exactly one of the two identifiers. This operation requires the secret key, which must never leave your servers.',
      'Percent-encode the id: an unencoded `+` is read as a space. Unknown identities also return 202, so check that `x-erasure-identity` is the identity you meant to erase.',
    ],
    keys: requireKey('secret'),
    confirmation: {
      prompt: 'Erase this person?',
      consequence: 'This erases all data about this identity and every identity linked to it. It cannot be undone.',
      confirmLabel: 'Erase',
    },
    parameters: [
      createQueryParameter('anonymousId', false, 'The anonymous identity to erase. Cannot be combined with userId.'),
      createQueryParameter(
        'userId',
        false,
        'The user id to erase, under every identity type. Cannot be combined with anonymousId.',
      ),
    ],
    body: null,
    paging: null,
    responses: withRateLimit([
      createResponse(202, 'The erasure request is recorded.', { headers: [ERASURE_ID, ERASURE_IDENTITY] }),
      INVALID,
      WRONG_KEY,
      TOO_MANY,
      FAILED,
    ]),
    examples: createEraseExamples(context),
  };
}

/** Adds the rules that zod checks in code: strings must not be blank, and each message type has required fields. */
export function refineSchemas(schemas: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> {
  const { EventContext, Message } = schemas;
  return {
    ...schemas,
    EventContext: requireNotBlank(EventContext ?? {}, ['library', 'libraryVersion']),
    Message: { ...Message, allOf: createTypeRules() },
  };
}

function requireNotBlank(schema: JsonSchema, names: readonly string[]): JsonSchema {
  const properties = { ...(schema.properties as Record<string, JsonSchema>) };
  for (const name of names) properties[name] = { ...properties[name], pattern: NOT_BLANK };
  return { ...schema, properties };
}

/** Contract, "Required per type". */
function createTypeRules(): JsonSchema[] {
  return REQUIRED_BY_TYPE.map(({ type, field }) => ({
    if: { properties: { type: { const: type } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: {
      required: [field],
      properties: { [field]: { type: 'string', pattern: NOT_BLANK } },
      // Some validators forbid properties that a subschema with properties does not mention.
      additionalProperties: true,
    },
  }));
}
