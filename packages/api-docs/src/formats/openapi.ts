import type { BodySpec, Example, JsonSchema, KeyUse, Operation, Paging, ResponseSpec } from '../operation.ts';
import { EXAMPLE_TRACE_ID } from '../responses.ts';
import { createComponentSchemas, toSchema } from '../schemas.ts';
import type { DocsSource, KeySpec } from '../source.ts';
import { jsonValueOf, valuesIn } from '../values.ts';

export function toOpenApi(source: DocsSource): Record<string, unknown> {
  const { title, version, summary, publicUrl, tag, keys } = source;
  return {
    openapi: '3.1.0',
    info: {
      title,
      version,
      summary,
      description: `For error codes, see ${publicUrl}/docs/errors. Every example is tested against the service.`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl }],
    externalDocs: { url: `${publicUrl}/docs` },
    tags: [tag],
    paths: toPaths(source),
    components: {
      schemas: createComponentSchemas(source),
      parameters: {
        traceparent: {
          name: 'traceparent',
          in: 'header',
          description: 'W3C Trace Context. An invalid value is ignored.',
          schema: { type: 'string' },
          example: `00-${EXAMPLE_TRACE_ID}-00f067aa0ba902b7-01`,
        },
      },
      securitySchemes: Object.fromEntries(keys.map((key) => [schemeOf(key), toScheme(key)])),
    },
  };
}

const schemeOf = ({ kind }: Pick<KeyUse, 'kind'>): string => `${kind}Key`;

const toScheme = ({ header, note }: KeySpec) => ({ type: 'apiKey', in: 'header', name: header, description: note });

function toPaths({ operations, tag }: DocsSource): Record<string, Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const operation of operations) {
    const methods = paths[operation.path] ?? {};
    methods[operation.method.toLowerCase()] = toOperation(operation, tag.name);
    paths[operation.path] = methods;
  }
  return paths;
}

function toOperation(operation: Operation, tag: string) {
  const { id, summary, description, keys, body, responses, examples } = operation;
  const content = body && {
    'application/json': {
      schema: toSchema(body.schema),
      examples: toExamples(examples, (example) => validBodyOf(example, body.schema)),
    },
  };
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: description.join('\n\n'),
    security: toSecurity(keys),
    parameters: [...toParameters(operation), { $ref: '#/components/parameters/traceparent' }],
    ...(body && { requestBody: { required: true, description: body.description, content } }),
    responses: Object.fromEntries(responses.map((one) => [one.status, toResponse(one, operation)])),
  };
}

/** Returns all combinations of keys that the operation accepts. */
function toSecurity(keys: readonly KeyUse[]): Record<string, never[]>[] {
  const [required, optional] = [keys.filter((key) => key.required), keys.filter((key) => !key.required)];
  const minimum = Object.fromEntries(required.map((key) => [schemeOf(key), []]));
  const combinations: Record<string, never[]>[] = [minimum];
  for (const key of optional)
    for (const extended of combinations.map((set) => ({ ...set, [schemeOf(key)]: [] }))) combinations.push(extended);
  return combinations;
}

function toParameters(operation: Operation) {
  return operation.parameters.map(({ name, in: location, required, description, schema }) => ({
    name,
    in: location,
    required,
    description,
    schema: toSchema(schema),
    examples: toExamples(operation.examples, (example) => {
      const text = valuesIn(operation, example).get(name);
      return text === undefined ? undefined : jsonValueOf(text, schema);
    }),
  }));
}

function toResponse(response: ResponseSpec, operation: Operation) {
  const { status, description, codes, headers } = response;
  const schemas = [...(codes.length === 0 ? [] : [toEnvelope(codes)]), ...toResponseBody(response)];
  const [first, ...more] = schemas;
  const bodies = toExamples(operation.examples, (example) =>
    example.response.status === status ? example.response.body : null,
  );
  return {
    description,
    headers: Object.fromEntries(
      headers.map(({ name, schema, ...header }) => [name, { description: header.description, required: true, schema }]),
    ),
    ...(first && {
      content: { 'application/json': { schema: more.length === 0 ? first : { oneOf: schemas }, examples: bodies } },
    }),
    ...(operation.paging !== null && status < 300 && { links: toLinks(operation, operation.paging) }),
  };
}

function toLinks({ id, parameters }: Operation, { parameter, next, previous }: Paging) {
  const pathParameters = parameters
    .filter((one) => one.in === 'path')
    .map(({ name }) => [`path.${name}`, `$request.path.${name}`]);
  const link = (which: string, members: readonly string[]) => ({
    operationId: id,
    parameters: {
      ...Object.fromEntries(pathParameters),
      [`query.${parameter}`]: `$response.body#/${members.join('/')}`,
    },
    description: `The ${which} page. All other parameters stay the same.`,
  });
  return { next: link('next', next), previous: link('previous', previous) };
}

function toEnvelope(codes: ResponseSpec['codes']): JsonSchema {
  return { allOf: [{ $ref: '#/components/schemas/ErrorEnvelope' }, { properties: { code: { enum: codes } } }] };
}

function toResponseBody({ schema, constraints }: ResponseSpec): JsonSchema[] {
  if (schema === null) return [];
  const body = toSchema(schema, 'output');
  return [constraints === null ? body : { allOf: [body, constraints] }];
}

/** Returns OpenAPI examples by name. Omits examples for which `pick` returns null or undefined. */
function toExamples(examples: readonly Example[], pick: (example: Example) => unknown): Record<string, unknown> {
  const entries = examples.map((example) => [example, pick(example)] as const);
  return Object.fromEntries(
    entries
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([{ name, title }, value]) => [name, { summary: title, value }]),
  );
}

/** Returns null for a request that fails or contains an invalid item. Only the responses show such examples. */
function validBodyOf({ request, response }: Example, schema: BodySpec['schema']): unknown {
  if (request.body === null || response.status >= 400) return null;
  const value: unknown = JSON.parse(request.body);
  return schema.safeParse(value).success ? value : null;
}
