import { setKeyOrigins } from '@playline/access-keys';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { getConsent, putConsent, wanted } from '../../test/audience-calls.ts';
import { expectEnvelope, MESSAGES, message, openGateway } from '../../test/open-gateway.ts';

const GAME = 'https://game.example';
const STRANGER = 'https://game.example.evil.example';
/** Longest time until every process knows a change of a key (`@playline/access-keys`). */
const KNOWN_MAX_MS = 1_000;

/** Opens a gateway that has loaded a publishable key with a list of origins. */
async function openListed(origins: readonly string[] = [GAME]) {
  const gateway = await openGateway();
  const set = (list: readonly string[]) =>
    setKeyOrigins({ store: gateway.store }, { environmentId: 'demo-test', origins: list });
  await set(origins);
  const post = (origin?: string) => gateway.post({ messages: [message()] }, origin === undefined ? {} : { origin });
  return { ...gateway, gateway, set, post };
}

it('a publishable key with allowed origins is accepted from pages of those and from callers without an origin, and only that origin may read the answer', async () => {
  const { post } = await openListed();
  const answer = await post(GAME);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('access-control-allow-origin')).toBe(GAME);
  expect([answer.headers.get('vary'), answer.headers.get('access-control-expose-headers')]).toEqual([
    'Origin',
    'Retry-After, RateLimit, RateLimit-Policy, x-trace-id',
  ]);
  const server = await post();
  expect([server.status, server.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
});

it.each([STRANGER, 'http://game.example', 'https://GAME.example', 'null', `${GAME}:8443`, `${GAME}, ${STRANGER}`])(
  'a publishable key with allowed origins is refused to pages of %s with 401 that they cannot read, and nothing is stored',
  async (origin) => {
    const { post, producer, usage } = await openListed();
    const answer = await post(origin);
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([401, null]);
    expect(answer.headers.get('vary')).toBe('Origin');
    await expectEnvelope(answer, 'UNAUTHORISED_REQUEST', { header: 'origin' });
    expect(producer.sent).toEqual([]);
    expect(usage.take().keys).toMatchObject([{ refusals: 1, lastRefusal: { reason: 'ORIGIN_NOT_ALLOWED' } }]);
  },
);

it('a publishable key with allowed origins is refused by the consent operations with 400 from other origins, and accepted otherwise', async () => {
  const { gateway } = await openListed();
  const refused = await putConsent(gateway, wanted(), { origin: STRANGER });
  expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([400, null]);
  await expectEnvelope(refused, 'VALIDATION_ERROR', { header: 'origin' });
  expect((await putConsent(gateway, wanted(), { origin: GAME })).status).toBe(204);
  expect(await (await getConsent(gateway)).json()).toEqual({ status: 'full' });
});

it('a publishable key with allowed origins answers preflights of any origin: they carry no key', async () => {
  const { url } = await openListed();
  const answer = await fetch(url + MESSAGES, { method: 'OPTIONS', headers: { origin: STRANGER } });
  expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([204, '*']);
});

it('a publishable key with allowed origins follows a changed list, and its removal, within a second', async () => {
  const { post, set } = await openListed();
  expect((await post(STRANGER)).status).toBe(401);
  await set([STRANGER]);
  await until('the other list counts', async () => (await post(STRANGER)).status === 200, KNOWN_MAX_MS);
  expect((await post(GAME)).status).toBe(401);
  await set([]);
  await until('any origin is good', async () => (await post(GAME)).status === 200, KNOWN_MAX_MS);
  expect((await post(GAME)).headers.get('access-control-allow-origin')).toBe('*');
});
