// Contract, "Error envelope".
// Left out of the table of statuses: 403 and 409, which no audience operation gives, and 500, which needs a store to fail.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Client, CONSENT_PATH, DATA_PATH, expectEnvelope, MESSAGES_PATH, track } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway({ RATE_LIMIT_CONSENTS_PER_S: '1', RATE_LIMIT_CONSENTS_BURST: '30' });
}, START_MAX_MS);
afterAll(() => client.close());

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const json = { 'content-type': 'application/json' };
const publishable = () => ({ ...json, 'x-service-publishable-key': client.publishableKey });
const put = (body: RequestInit['body'], headers = {}) =>
  client.request(CONSENT_PATH, { method: 'PUT', headers: { ...publishable(), ...headers }, body });
const batch = () => JSON.stringify({ messages: [track()] });

const FAULTS: [string, number, string, (headers: Record<string, string>) => Promise<Answer>][] = [
  ['unknown route', 404, 'RESOURCE_NOT_FOUND', (headers) => client.request('/v2/audience', { headers })],
  ['wrong method', 404, 'RESOURCE_NOT_FOUND', (headers) => client.request(DATA_PATH, { method: 'POST', headers })],
  [
    'wrong method of consent',
    404,
    'RESOURCE_NOT_FOUND',
    (headers) => client.request(CONSENT_PATH, { method: 'DELETE', headers }),
  ],
  ['unreadable JSON in a batch', 400, 'VALIDATION_ERROR', (headers) => client.post('{', headers)],
  ['unreadable JSON in a consent', 400, 'VALIDATION_ERROR', (headers) => put('{', headers)],
  ['a consent that is no object', 400, 'VALIDATION_ERROR', (headers) => put('[]', headers)],
  [
    'wrong content type in a batch',
    400,
    'VALIDATION_ERROR',
    (headers) => client.post(batch(), { ...headers, 'content-type': 'text/html' }),
  ],
  [
    'wrong content type in a consent',
    400,
    'VALIDATION_ERROR',
    (headers) => put('{}', { ...headers, 'content-type': 'text/html' }),
  ],
  [
    'unknown encoding of a batch',
    400,
    'VALIDATION_ERROR',
    (headers) => client.post(batch(), { ...headers, 'content-encoding': 'lzma' }),
  ],
  [
    'broken encoding of a batch',
    400,
    'VALIDATION_ERROR',
    (headers) => client.post(batch(), { ...headers, 'content-encoding': 'gzip' }),
  ],
  ['too large a batch', 400, 'VALIDATION_ERROR', (headers) => client.post(' '.repeat((1 << 20) + 1), headers)],
  ['too large a consent', 400, 'VALIDATION_ERROR', (headers) => put(' '.repeat(2 << 20), headers)],
  [
    'a refused key',
    401,
    'UNAUTHORISED_REQUEST',
    (headers) => client.post(batch(), { ...headers, 'x-service-publishable-key': 'x' }),
  ],
  [
    'an erasure without a key',
    400,
    'VALIDATION_ERROR',
    (headers) => client.request(DATA_PATH, { method: 'DELETE', headers }),
  ],
];

it.each(FAULTS)(
  'the envelope of %s: %i %s, in the envelope with the trace id of traceparent',
  async (_, status, code, send) => {
    const answer = await send({ traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` });
    expectEnvelope(answer, status, code);
    expect(answer.body.trace_id).toBe(TRACE_ID);
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
  },
);

it.each(FAULTS)(
  'the envelope of %s: %i %s, with a made trace id when there is no traceparent',
  async (_, status, code, send) => {
    const [one, two] = [await send({}), await send({})];
    expectEnvelope(one, status, code);
    expect(one.body.trace_id).not.toBe(two.body.trace_id);
  },
);

it('the envelope of details is an object or null', async () => {
  const { body } = await client.request('/nowhere');
  expect(body.details === null || (typeof body.details === 'object' && !Array.isArray(body.details))).toBe(true);
});

it('the envelope of an answer without an error has x-trace-id too', async () => {
  const answer = await client.request(MESSAGES_PATH, { method: 'POST', headers: publishable(), body: batch() });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('x-trace-id')).toMatch(/^[0-9a-f]{32}$/);
});

it('the link of an envelope opens a page that the service itself serves, one per code', async () => {
  const flood = Array.from({ length: 90 }, () =>
    client.request(`${CONSENT_PATH}?anonymousId=a`, { headers: publishable() }),
  );
  const limited = (await Promise.all(flood)).find(({ status }) => status === 429);
  const answers = [
    await client.post('{'),
    await client.post(batch(), { 'x-service-publishable-key': 'x' }),
    await client.request('/nowhere'),
    limited,
  ];
  const links = new Set<string>();
  for (const answer of answers) {
    const link: string = answer?.body.link;
    links.add(link);
    const page = await fetch(link);
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toMatch(/^text\//);
    expect(await page.text()).toContain(answer?.body.code);
  }
  expect(links.size).toBe(answers.length);
});
