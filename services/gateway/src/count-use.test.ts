import { expect, it } from 'vitest';
import { KEY_HEADER, message, openGateway } from './test/open-gateway.ts';

const CONSENT = '/v1/audience/tracking-consent?anonymousId=nobody';

it('the count of key use counts a request once, with its accepted and rejected messages', async () => {
  const { post, usage } = await openGateway();
  await post({ messages: [message(), message({ eventName: '' })] });
  const { keys, environments } = usage.take();
  expect(keys).toMatchObject([{ uses: 1, refusals: 0, lastRefusal: null }]);
  expect(environments).toEqual([{ environmentId: 'demo-test', accepted: 1, rejected: 1 }]);
});

it('the count of key use records the trace of a refusal and the reason given in the answer', async () => {
  const { post, usage, producer } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 3 });
  const lastOf = () => usage.take().keys[0]!;
  const refusalOf = (answer: Response, reason: string) => ({
    uses: 1,
    refusals: 1,
    lastRefusal: { at: expect.any(Number), reason, traceId: answer.headers.get('x-trace-id') },
  });
  const rejected = await post({ messages: [message({ eventName: '' })] });
  expect(lastOf()).toMatchObject(refusalOf(rejected, 'ALL_MESSAGES_REJECTED'));
  const nonsense = await post('nonsense');
  expect(lastOf()).toMatchObject(refusalOf(nonsense, 'VALIDATION_ERROR'));
  producer.mode = 'fail';
  const failed = await post({ messages: [message()] });
  expect(lastOf()).toMatchObject(refusalOf(failed, 'INTERNAL_SERVER_ERROR'));
  const limited = await post({ messages: [message()] });
  expect(limited.status).toBe(429);
  expect(lastOf()).toMatchObject(refusalOf(limited, 'TOO_MANY_REQUESTS_ERROR'));
});

it('the count of key use counts nothing for unknown keys or without a key', async () => {
  const { post, usage, key } = await openGateway();
  const flipped = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
  await post({ messages: [message()] }, { [KEY_HEADER]: flipped });
  await post({ messages: [message()] }, { [KEY_HEADER]: '' });
  expect(usage.take()).toMatchObject({ keys: [], environments: [], lost: 0 });
});

it('the count of key use counts reads of consents and erasures, each under its own key', async () => {
  const { url, usage, key, secretKey } = await openGateway();
  const headers = { [KEY_HEADER]: key };
  expect((await fetch(url + CONSENT, { headers })).status).toBe(200);
  expect((await fetch(`${url}/v1/audience/tracking-consent`, { headers })).status).toBe(400);
  const erased = await fetch(`${url}/v1/audience/data?anonymousId=nobody`, {
    method: 'DELETE',
    headers: { 'x-service-api-key': secretKey },
  });
  expect(erased.status).toBe(202);
  const { keys, environments } = usage.take();
  expect(keys).toMatchObject([
    { uses: 2, refusals: 1, lastRefusal: { reason: 'VALIDATION_ERROR' } },
    { uses: 1, refusals: 0 },
  ]);
  expect(environments).toEqual([]);
});
