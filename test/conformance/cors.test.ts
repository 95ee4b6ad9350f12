// Contract, ingest, row "CORS", for operations with a publishable key; erase-data.test.ts has the other half.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, CONSENT_PATH, MESSAGES_PATH, track } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

const batch = () => ({ messages: [track()] });
const readConsent = (headers: Record<string, string>) =>
  client.request(`${CONSENT_PATH}?anonymousId=a`, { headers: { origin: 'https://game.example', ...headers } });

const list = (text: string | null) =>
  (text ?? '')
    .toLowerCase()
    .split(/\s*,\s*/)
    .sort();

it.each([
  ['POST', MESSAGES_PATH],
  ['GET', CONSENT_PATH],
  ['PUT', CONSENT_PATH],
])('preflights of %s %s are answered for any origin, without credentials', async (method, path) => {
  const answer = await client.request(path, {
    method: 'OPTIONS',
    headers: { origin: 'https://game.example', 'access-control-request-method': method },
  });
  expect([200, 204]).toContain(answer.status);
  const { headers } = answer;
  expect(headers.get('access-control-allow-origin')).toBe('*');
  expect(headers.get('access-control-allow-credentials')).toBeNull();
  expect(list(headers.get('access-control-allow-headers'))).toEqual(
    ['content-type', 'content-encoding', 'x-service-publishable-key', 'traceparent'].sort(),
  );
  expect(list(headers.get('access-control-allow-methods'))).toEqual(['get', 'post', 'put']);
  expect(headers.get('access-control-max-age')).toBe('7200');
});

it.each([
  ['an accepted batch', () => client.post(batch(), { origin: 'https://game.example' })],
  ['a refused key', () => client.post(batch(), { 'x-service-publishable-key': 'x', origin: 'https://game.example' })],
  ['an unreadable body', () => client.post('{', { origin: 'https://game.example' })],
  ['a consent', () => readConsent({ 'x-service-publishable-key': client.publishableKey })],
  ['a refused consent', () => readConsent({})],
])('%s may be read by any origin, with the exposed headers', async (_, send) => {
  const { headers } = await send();
  expect(headers.get('access-control-allow-origin')).toBe('*');
  expect(list(headers.get('access-control-expose-headers'))).toEqual(
    ['retry-after', 'ratelimit', 'ratelimit-policy', 'x-trace-id'].sort(),
  );
});
