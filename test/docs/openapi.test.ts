import { randomUUID } from 'node:crypto';
import { createDocuments } from '@playline/api-docs';
import { parseMessage, parseTimestamp } from '@playline/contracts';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { expect, it } from 'vitest';
import { parseConsentUpdate, parseSubject } from '../../services/gateway/src/audience-routes.ts';
import { createFieldFacts, createSampleMessages } from '../../services/gateway/src/docs/messages.ts';
import { createGatewayDocs } from '../../services/gateway/src/docs/source.ts';
import { EDGE_LOCATIONS, EDGE_VALUES, withEdgeValue } from '../../services/gateway/src/scan/test/edge-values.ts';
import { SAMPLE_KINDS, sampleMessage } from '../../services/gateway/src/scan/test/sample-messages.ts';
import { openGateway } from '../../services/gateway/src/test/open-gateway.ts';
import { openGatewayIn, PUBLIC_URL, SOURCE } from './gateways.ts';

type Json = { [name: string]: Json };

const settings = { publicUrl: PUBLIC_URL, headerPrefix: 'x-service' };
const parse = (documents: ReturnType<typeof createDocuments>, path: string): Json =>
  JSON.parse(documents.get(path)?.text ?? '{}');
const openapi = parse(createDocuments(createGatewayDocs({ ...settings, nowMs: Date.now() })), '/openapi.json');

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const ajv = new Ajv2020({
  strict: true,
  strictTypes: false,
  strictRequired: false,
  allErrors: true,
  formats: { uuid: UUID, 'date-time': (text: string) => !Number.isNaN(parseTimestamp(text)) },
});

const toInternalRefs = (schema: unknown) =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"urn:schema:'));
for (const [name, schema] of Object.entries(openapi.components?.schemas ?? {}))
  ajv.addSchema(toInternalRefs(schema), `urn:schema:${name}`);
const compile = (schema: unknown): ValidateFunction => ajv.compile(toInternalRefs(schema));
const components = (name: string) => compile({ $ref: `#/components/schemas/${name}` });

const window = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };

const operations = Object.entries(openapi.paths ?? {}).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ at: `${method} ${path}`, method, path, operation })),
);

it('the OpenAPI document lists exactly the operations that the gateway has', async () => {
  const { routes } = await openGatewayIn(undefined);
  const documents = new Set(['/', ...createDocuments(SOURCE).keys()]);
  const served = routes
    .filter(({ path }) => !documents.has(path) && !path.startsWith('/docs/'))
    .map(({ method, path }) => `${method} ${path}`);
  expect(operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`).sort()).toEqual(served.sort());
});

it('the OpenAPI document has all fields that OpenAPI 3.1 requires', () => {
  expect(openapi.openapi).toBe('3.1.0');
  expect(openapi.info).toMatchObject({ title: expect.any(String), version: expect.any(String) });
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(ids).toEqual([...new Set(ids)]);
  for (const { at, path, operation } of operations) {
    expect(path, at).not.toMatch(/[{}]/);
    const [security = {}] = Object.values(operation.security ?? {});
    for (const name of Object.keys(security)) expect(openapi.components?.securitySchemes, at).toHaveProperty(name);
    for (const [status, response] of Object.entries(operation.responses ?? {})) {
      expect(status).toMatch(/^[2-5]\d\d$/);
      expect(response.description, `${at} ${status}`).toMatch(/\S/);
    }
  }
});

it('every schema is valid JSON Schema 2020-12', () => {
  for (const [name, schema] of Object.entries(openapi.components?.schemas ?? {})) {
    expect(ajv.validateSchema(schema), name).toBe(true);
    expect(() => components(name)).not.toThrow();
  }
});

it('every parameter and response example is valid against its schema', () => {
  let count = 0;
  const expectValid = (holder: Json | undefined, at: string) => {
    if (holder?.examples === undefined) return;
    const validate = compile(holder.schema);
    for (const [name, { value }] of Object.entries(holder.examples)) {
      count++;
      expect(validate(value), `${at} ${name}: ${ajv.errorsText(validate.errors)}`).toBe(true);
    }
  };
  for (const { at, operation } of operations) {
    for (const parameter of Object.values(operation.parameters ?? {})) expectValid(parameter, at);
    for (const [status, response] of Object.entries(operation.responses ?? {}))
      expectValid(response.content?.['application/json'], `${at} ${status}`);
  }
  expect(count).toBeGreaterThan(20);
});

it('a request body has only examples that the gateway accepts and that are valid against its schema', () => {
  let count = 0;
  for (const { at, operation } of operations) {
    const body = operation.requestBody?.content?.['application/json'];
    if (body === undefined) continue;
    const accepted = Object.entries(operation.responses ?? {}).flatMap(([status, response]) =>
      Number(status) >= 300
        ? []
        : (Object.entries(response.content?.['application/json']?.examples ?? {}) as [string, Json][]),
    );
    const validate = compile(body.schema);
    for (const [name, { value }] of Object.entries(body.examples ?? {})) {
      count++;
      expect(validate(value), `${at} ${name}`).toBe(true);
      const response = accepted.find(([one]) => one === name);
      expect(Number(response?.[1].value?.rejected ?? 0), name).toBe(0);
    }
  }
  expect(count).toBe(3);
});

it('every field of a message has a description and a valid example, which the reference also shows', () => {
  const reference = createDocuments(SOURCE).get('/docs/messages')?.text ?? '';
  for (const schema of ['Message', 'EventContext'])
    for (const [name, field] of Object.entries(openapi.components?.schemas?.[schema]?.properties ?? {})) {
      expect(field.description, name).toMatch(/^[A-Z].+\.$/);
      for (const example of Object.values(field.examples ?? [])) expect(compile(field)(example), name).toBe(true);
      expect(reference, name).toContain(`<code>${schema === 'Message' ? '' : 'context.'}${name}</code>`);
    }
});

it('the reference lists every code with which a field can be rejected', () => {
  const facts = createFieldFacts({});
  const found = new Set<string>();
  // A number too large for a double is INVALID_VALUE in every field.
  const values = [...EDGE_VALUES, 'x'.repeat(3000)].filter(
    (value) => typeof value !== 'number' || Number.isFinite(value),
  );
  for (let kind = 0; kind < SAMPLE_KINDS; kind++)
    for (const location of EDGE_LOCATIONS)
      for (const value of values) {
        const parsed = parseMessage(withEdgeValue(sampleMessage(kind, Date.now()), location, value), window);
        for (const { field, code } of parsed.ok ? [] : parsed.errors)
          if (field !== 'message') found.add(`${field} ${code}`);
      }
  const listed = facts.flatMap(({ name, codes }) => codes.map((code) => `${name} ${code}`));
  expect([...found].filter((one) => !listed.includes(one))).toEqual([]);
  expect(found.size).toBeGreaterThan(40);
});

it('the gateway accepts the example of each message type in the reference', async () => {
  const gateway = await openGatewayIn(undefined);
  const messages = Object.values(createSampleMessages({ nowMs: Date.now() })).map((message) =>
    Object.assign({}, message, { messageId: randomUUID() }),
  );
  expect(await (await gateway.post({ messages })).json()).toMatchObject({ accepted: 5, rejected: 0 });
});

it('all documents use the configured key headers', async () => {
  const { url } = await openGateway({ HTTP_HEADER_PREFIX: 'x-other' });
  const text = await (await fetch(`${url}/openapi.json`)).text();
  const { securitySchemes } = (JSON.parse(text) as Json).components ?? {};
  expect(securitySchemes?.publishableKey?.name).toBe('x-other-publishable-key');
  expect(securitySchemes?.secretKey?.name).toBe('x-other-api-key');
  const pages = ['/docs/reference', '/docs/errors/VALIDATION_ERROR'];
  for (const path of ['/openapi.json', '/llms.txt', '/collection.json', ...pages])
    expect(await (await fetch(url + path)).text(), path).not.toContain('x-service-');
});

const validate = components('Message');

it('the message schema and the parser accept the same messages, except for two checks that a schema cannot express', () => {
  const counts = { valid: 0, invalid: 0, rejectedByParser: 0 };
  for (let kind = 0; kind < SAMPLE_KINDS; kind++)
    for (const location of EDGE_LOCATIONS)
      for (const value of EDGE_VALUES) {
        const message = withEdgeValue(sampleMessage(kind, Date.now()), location, value);
        const allowed = validate(message);
        const parsed = parseMessage(message, window);
        if (allowed === parsed.ok) counts[allowed ? 'valid' : 'invalid']++;
        else {
          counts.rejectedByParser++;
          expect({ location, value, allowed, parsed }).toMatchObject({ allowed: true, parsed: { ok: false } });
          const messages = parsed.ok ? [] : parsed.errors.map((error) => error.message);
          // A schema cannot compare fields or find lone surrogates.
          for (const message of messages) expect(message).toMatch(/is the same as fromId|contains a lone surrogate/);
        }
      }
  expect(Math.min(counts.valid, counts.invalid, counts.rejectedByParser)).toBeGreaterThan(10);
});

const isAccepted = (parse: () => unknown) => {
  try {
    return Boolean(parse());
  } catch {
    return false;
  }
};
const hasLoneSurrogate = (value: unknown) => typeof value === 'string' && !value.isWellFormed();

it('the consent schema accepts exactly the bodies that the gateway accepts', () => {
  const validate = components('UpdateTrackingConsentRequest');
  const valid = { anonymousId: 'a', status: 'full', source: 's', more: 1 };
  const values = [...EDGE_VALUES, undefined, 'none', 'anonymous', 'a'.repeat(128), '😀'.repeat(128), '😀'.repeat(129)];
  const counts = { accepted: 0, rejected: 0 };
  for (const member of ['anonymousId', 'status', 'source'])
    for (const value of values.filter((one) => !hasLoneSurrogate(one))) {
      const text = JSON.stringify({ ...valid, [member]: value });
      const accepted = isAccepted(() => parseConsentUpdate(Buffer.from(text)));
      expect({ text, allowed: validate(JSON.parse(text)) }).toEqual({ text, allowed: accepted });
      counts[accepted ? 'accepted' : 'rejected']++;
    }
  expect(Math.min(counts.accepted, counts.rejected)).toBeGreaterThan(20);
});

it('the erasure parameters accept exactly the ids that the gateway accepts in a query', () => {
  const parameters = operations.flatMap(({ operation }) => Object.values(operation.parameters ?? {}));
  const schemas = parameters.flatMap(({ schema, in: location }) => (String(location) === 'query' ? [schema] : []));
  expect(schemas).toHaveLength(3);
  const texts = EDGE_VALUES.filter((value) => typeof value === 'string' && value.isWellFormed());
  for (const schema of schemas)
    for (const text of texts) {
      const target = `/v1/audience/data?userId=${encodeURIComponent(String(text))}`;
      const allowed = isAccepted(() => parseSubject(target));
      expect({ text, allowed: compile(schema)(text) }).toEqual({ text, allowed });
    }
});
