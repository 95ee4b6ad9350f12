import { EXAMPLE_TRACE_ID } from '../examples/example.ts';
import { type AnswerSpec, type Example, KEY_OF, keyHeadersOf, type Operation } from '../operation.ts';
import { createComponentSchemas, type JsonSchema, toSchema } from '../schemas.ts';
import type { DocsSource } from '../source.ts';

/** Of the interface, not of the program: it rises when callers have to know. */
const INTERFACE_VERSION = '1.0.0';

/** OpenAPI 3.1 of every operation. */
export function toOpenApi({ context, operations }: DocsSource): Record<string, unknown> {
  const keyHeaders = keyHeadersOf(context);
  const scheme = (name: string, description: string) => ({ type: 'apiKey', in: 'header', name, description });
  return {
    openapi: '3.1.0',
    info: {
      title: 'Playline audience interface',
      version: INTERFACE_VERSION,
      summary: 'Events of games, consent and erasure',
      description: `Errors are explained at ${context.publicUrl}/docs. A test sends every example.`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: context.publicUrl }],
    externalDocs: { url: `${context.publicUrl}/docs` },
    tags: [{ name: 'audience', description: 'Messages, consent and erasure of players and visitors' }],
    paths: toPaths(operations),
    components: {
      schemas: createComponentSchemas(),
      parameters: {
        traceparent: {
          name: 'traceparent',
          in: 'header',
          description: 'W3C Trace Context. One that is not valid is ignored.',
          schema: { type: 'string' },
          example: `00-${EXAMPLE_TRACE_ID}-00f067aa0ba902b7-01`,
        },
      },
      securitySchemes: {
        publishableKey: scheme(keyHeaders.publishable, 'Public: may be part of a game or a page.'),
        secretKey: scheme(keyHeaders.secret, 'For servers alone: never part of a game or a page.'),
      },
    },
  };
}

function toPaths(operations: readonly Operation[]): Record<string, Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const operation of operations) {
    const methods = paths[operation.path] ?? {};
    methods[operation.method.toLowerCase()] = toOperation(operation);
    paths[operation.path] = methods;
  }
  return paths;
}

function toOperation({ id, summary, description, key, query, body, answers, examples }: Operation) {
  const parameters = query.map(({ name, required, description: words, schema }) => ({
    name,
    in: 'query',
    required,
    description: words,
    schema: toSchema(schema),
    examples: named(examples, (example) => queryOf(example).get(name)),
  }));
  const content = body && {
    'application/json': { schema: toSchema(body.schema), examples: named(examples, bodyOf) },
  };
  return {
    operationId: id,
    tags: ['audience'],
    summary,
    description: description.join('\n\n'),
    security: [{ [`${key}Key`]: [] }],
    parameters: [...parameters, { $ref: '#/components/parameters/traceparent' }],
    ...(body && { requestBody: { required: true, description: body.description, content } }),
    responses: Object.fromEntries(answers.map((one) => [one.status, toResponse(one, examples)])),
  };
}

function toResponse({ status, description, schema, codes, headers }: AnswerSpec, examples: readonly Example[]) {
  const schemas = [
    ...(codes.length === 0 ? [] : [toEnvelope(codes)]),
    ...(schema ? [toAnswerBody(schema, status)] : []),
  ];
  const [only, ...more] = schemas;
  const answered = named(examples, ({ answer }) => (answer.status === status ? answer.body : null));
  return {
    description,
    headers: Object.fromEntries(
      headers.map(({ name, description: words, schema: value }) => [
        name,
        { description: words, required: true, schema: value },
      ]),
    ),
    ...(only && {
      content: { 'application/json': { schema: more.length === 0 ? only : { oneOf: schemas }, examples: answered } },
    }),
  };
}

/** The envelope narrowed to the codes of one status. */
function toEnvelope(codes: AnswerSpec['codes']): JsonSchema {
  return {
    allOf: [{ $ref: '#/components/schemas/ErrorEnvelope' }, { properties: { code: { enum: codes } } }],
  };
}

/** A batch of which nothing was accepted is the one body that an error and a success share. */
function toAnswerBody(schema: NonNullable<AnswerSpec['schema']>, status: number): JsonSchema {
  if (status < 400) return toSchema(schema);
  return { allOf: [toSchema(schema), { properties: { success: { const: false }, accepted: { const: 0 } } }] };
}

/** OpenAPI's map of examples: those that have the value. */
function named(examples: readonly Example[], pick: (example: Example) => unknown): Record<string, unknown> {
  const entries = examples.map((example) => [example, pick(example)] as const);
  return Object.fromEntries(
    entries
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([{ name, title }, value]) => [name, { summary: title, value }]),
  );
}

function queryOf({ request }: Example): URLSearchParams {
  return new URL(request.target, 'http://any').searchParams;
}

/** Null when the request differs in more than its body, which an example of a body cannot show. */
function bodyOf({ request, situation }: Example): unknown {
  const { body, headers } = request;
  const plain = Object.values(headers).includes(KEY_OF.publishable) && headers['content-type'] === 'application/json';
  if (body === null || !plain || 'content-encoding' in headers || situation !== undefined) return null;
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
