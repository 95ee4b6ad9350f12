// Contract, "Error envelope". 500 is tested in failures.test.ts; no audience operation gives 403 or 409.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Client, CONSENT_PATH, DATA_PATH, expectEnvelope, MESSAGES_PATH, track } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway({ RATE_LIMIT_CONSENTS_PER_S: '1', RATE_LIMIT_CONSENTS_BURST: '30' });
}, START_MAX_MS);
afterAll(() => client.close());

type Headers = Record<string, string>;
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const publishable = () => ({ 'content-type': 'application/json', 'x-service-publishable-key': client.publishableKey });
const put = (body: string, headers: Headers) =>
  client.request(CONSENT_PATH, { method: 'PUT', headers: { ...publishable(), ...headers }, body });
const post = (headers: Headers) => client.post({ messages: [track()] }, headers);

const FAULTS: [string, number, string, (headers: Headers) => Promise<Answer>][] = [
  ['an unknown route', 404, 'RESOURCE_NOT_FOUND', (headers) => client.request('/v2/audience', { headers })],
  ['a wrong method', 404, 'RESOURCE_NOT_FOUND', (headers) => client.request(MESSAGES_PATH, { method: 'PUT', headers })],
  ['an unreadable batch', 400, 'VALIDATION_ERROR', (headers) => client.post('{', headers)],
  ['an unreadable consent', 400, 'VALIDATION_ERROR', (headers) => put('{', headers)],
  ['a content type', 400, 'VALIDATION_ERROR', (headers) => post({ ...headers, 'content-type': 'text/html' })],
  ['an encoding', 400, 'VALIDATION_ERROR', (headers) => post({ ...headers, 'content-encoding': 'lzma' })],
  ['too large a consent', 400, 'VALIDATION_ERROR', (headers) => put(' '.repeat(2 << 20), headers)],
  ['a key', 401, 'UNAUTHORISED_REQUEST', (headers) => post({ ...headers, 'x-service-publishable-key': 'x' })],
  [
    'an erasure without a key',
    400,
    'VALIDATION_ERROR',
    (headers) => client.request(DATA_PATH, { method: 'DELETE', headers }),
  ],
];

it.each(FAULTS)(
  'the refusal of %s is %i %s in the envelope, with the trace id of traceparent or a new one',
  async (_, status, code, send) => {
    const traced = await send({ traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` });
    expectEnvelope(traced, status, code);
    expect(traced.body.trace_id).toBe(TRACE_ID);
    expect(traced.headers.get('content-type')).toMatch(/^application\/json/);
    const [one, two] = [await send({}), await send({ traceparent: 'nonsense' })];
    expectEnvelope(one, status, code);
    expect(one.body.trace_id).not.toBe(two.body.trace_id);
  },
);

it('an answer without an error has x-trace-id too', async () => {
  expect((await post({})).headers.get('x-trace-id')).toMatch(/^[0-9a-f]{32}$/);
});

it('link opens a page that the service itself serves, one per code', async () => {
  const flood = Array.from({ length: 90 }, () =>
    client.request(`${CONSENT_PATH}?anonymousId=a`, { headers: publishable() }),
  );
  const limited = (await Promise.all(flood)).find(({ status }) => status === 429);
  const refused = await post({ 'x-service-publishable-key': 'x' });
  const answers = [await client.post('{'), refused, await client.request('/nowhere'), limited];
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
