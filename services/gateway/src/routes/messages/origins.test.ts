import { changeKey } from '@playline/access-keys';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { consentChange, getConsent, putConsent } from '../../test/audience-calls.ts';
import { expectEnvelope, MESSAGES, message, openGateway } from '../../test/open-gateway.ts';

const GAME = 'https://game.example';
const OTHER_ORIGIN = 'https://game.example.evil.example';
/** Maximum time until every process applies a key change (`@playline/access-keys`). */
const APPLIED_MAX_MS = 1_000;

/** Opens a gateway with a publishable key that has a list of origins. */
async function openWithOrigins(origins: readonly string[] = [GAME]) {
  const gateway = await openGateway();
  const set = (list: readonly string[]) =>
    changeKey({ store: gateway.store }, { environmentId: 'demo-test', origins: list });
  await set(origins);
  const post = (origin?: string) => gateway.post({ messages: [message()] }, origin === undefined ? {} : { origin });
  return { ...gateway, gateway, set, post };
}

it('a key with allowed origins works for those origins and without Origin, and CORS allows only the requesting origin', async () => {
  const { post } = await openWithOrigins();
  const response = await post(GAME);
  expect(response.status).toBe(200);
  expect(response.headers.get('access-control-allow-origin')).toBe(GAME);
  expect([response.headers.get('vary'), response.headers.get('access-control-expose-headers')]).toEqual([
    'Origin',
    'Retry-After, RateLimit, RateLimit-Policy, x-trace-id',
  ]);
  const server = await post();
  expect([server.status, server.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
});

it.each([
  OTHER_ORIGIN,
  'http://game.example',
  'https://GAME.example',
  'null',
  `${GAME}:8443`,
  `${GAME}, ${OTHER_ORIGIN}`,
])('a page at %s, which its key does not allow, gets 401 without CORS headers and stores nothing', async (origin) => {
  const { post, producer, usage } = await openWithOrigins();
  const response = await post(origin);
  expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([401, null]);
  expect(response.headers.get('vary')).toBe('Origin');
  await expectEnvelope(response, 'UNAUTHORISED_REQUEST', { header: 'origin' });
  expect(producer.sent).toEqual([]);
  expect(usage.take().keys).toMatchObject([{ refusals: 1, lastRefusal: { reason: 'ORIGIN_NOT_ALLOWED' } }]);
});

it('consent operations return 400 to origins that the key does not allow', async () => {
  const { gateway } = await openWithOrigins();
  const refused = await putConsent(gateway, consentChange(), { origin: OTHER_ORIGIN });
  expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([400, null]);
  await expectEnvelope(refused, 'VALIDATION_ERROR', { header: 'origin' });
  expect((await putConsent(gateway, consentChange(), { origin: GAME })).status).toBe(204);
  expect(await (await getConsent(gateway)).json()).toEqual({ status: 'full' });
});

it('preflight requests succeed for any origin, because they contain no key', async () => {
  const { url } = await openWithOrigins();
  const response = await fetch(url + MESSAGES, { method: 'OPTIONS', headers: { origin: OTHER_ORIGIN } });
  expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([204, '*']);
});

it('changing or removing the list of allowed origins takes effect within a second', async () => {
  const { post, set } = await openWithOrigins();
  expect((await post(OTHER_ORIGIN)).status).toBe(401);
  await set([OTHER_ORIGIN]);
  await until('the new list applies', async () => (await post(OTHER_ORIGIN)).status === 200, APPLIED_MAX_MS);
  expect((await post(GAME)).status).toBe(401);
  await set([]);
  await until('any origin is accepted', async () => (await post(GAME)).status === 200, APPLIED_MAX_MS);
  expect((await post(GAME)).headers.get('access-control-allow-origin')).toBe('*');
});
