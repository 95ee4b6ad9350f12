import { type ClientRequest, request } from 'node:http';
import { MINT_BODY_BYTES_MAX } from '@playline/mints';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { COLLECTION, MINTS, order, SECRET_KEY_HEADER } from '../../test/minting-world.ts';
import { expectEnvelope, openChainApi, type TestChainApi } from '../../test/open-chain-api.ts';

/** Announces the largest permitted body and sends so many of its bytes, at most all but one. */
function sendPart({ url, minting }: Pick<TestChainApi, 'url' | 'minting'>, bytes: number): ClientRequest {
  const sent = { 'content-type': 'application/json', 'content-length': MINT_BODY_BYTES_MAX };
  const headers = { ...sent, [SECRET_KEY_HEADER]: minting.secretKey };
  const sending = request(`${url}/v1/chains/demo-chain/collections${MINTS}`, { method: 'POST', headers });
  sending.on('error', () => {});
  sending.flushHeaders();
  sending.write(Buffer.alloc(bytes, ' '));
  return sending;
}

it('POST mint-requests answers 429 beyond the burst, with header fields of the quota and Retry-After', async () => {
  const api = await openChainApi({ MINTS_BURST: 100, MINTS_PER_MINUTE: 1 });
  const ids = Array.from({ length: 100 }, (_, at) => `id-${at}`);
  expect((await api.call(MINTS, { body: order(...ids) })).status).toBe(202);
  const answer = await api.call(MINTS, { body: order('one', 'two') });
  expect(answer.status).toBe(429);
  expect(answer.headers.get('retry-after')).toBe(answer.headers.get('imx-mint-requests-retry-after'));
  expect(answer.headers.get('imx-remaining-mint-requests')).toBe('0');
  expect(answer.headers.get('imx-mint-requests-limit')).toBe('100');
  expect(answer.headers.get('imx-mint-requests-limit-reset')).toMatch(/Z$/);
  await expectEnvelope(answer, 'TOO_MANY_REQUESTS_ERROR');
  expect(api.minting.requests).toHaveLength(100);
  expect((await api.call(MINTS, { body: order('id-1') })).status).toBe(409);
});

it.each([
  ['mint-requests', MINTS, 'imx-remaining-mint-requests', 'imx-mint-requests-limit-reset'],
  ['refresh-metadata', `/${COLLECTION}/refresh-metadata`, 'imx-remaining-refreshes', 'imx-refresh-limit-reset'],
])('a refusal of the limit of calls has the header fields of %s', async (_what, path, remaining, reset) => {
  const api = await openChainApi({ RATE_LIMIT_CALLS: 1 });
  await api.call(path, { body: order('a') });
  const answer = await api.call(path, { body: order('b') });
  expect(answer.status).toBe(429);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(answer.headers.get(remaining)).toBe('0');
  expect(answer.headers.get(reset)).toMatch(/Z$/);
  const retryAfter = path === MINTS ? 'imx-mint-requests-retry-after' : 'retry-after';
  expect(answer.headers.get(retryAfter)).toBe(answer.headers.get('retry-after'));
});

it('announced bodies that do not arrive cause no 429', async () => {
  const api = await openChainApi();
  const hanging = Array.from({ length: 20 }, () => sendPart(api, 1));
  await Promise.all(hanging.map((each) => new Promise((resolve) => each.once('socket', resolve))));
  for (let at = 0; at < 20; at++) expect((await api.call(MINTS, { body: order(`id-${at}`) })).status).toBe(202);
  for (const each of hanging) each.destroy();
});

it('a 429 without memory for bodies shows the remaining quota', async () => {
  const api = await openChainApi({ MINTS_BURST: 100 });
  expect((await api.call(MINTS, { body: order('first') })).status).toBe(202);
  const hanging = Array.from({ length: 16 }, () => sendPart(api, MINT_BODY_BYTES_MAX - 1));
  let answer: Response | null = null;
  let tries = 0;
  await until('there is no memory', async () => {
    answer = await api.call(MINTS, { body: order(`id-${tries++}`) });
    return answer.status === 429;
  });
  const { headers } = answer as unknown as Response;
  expect(headers.get('imx-remaining-mint-requests')).toBe(String(100 - tries));
  expect(headers.get('imx-mint-requests-retry-after')).toBe(headers.get('retry-after'));
  for (const each of hanging) each.destroy();
});
