import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { revokeKey } from '@playline/access-keys';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { CONSENT, wanted } from './test/audience-calls.ts';
import { KEY_HEADER, MESSAGES, message, openGateway, type TestGateway } from './test/open-gateway.ts';

const OWNER = { projectId: 'p', environmentId: 'demo-test', environment: 'production', kind: 'publishable' } as const;

/** Sends all of a request but its last byte. */
function begin({ url, key }: TestGateway, method: string, path: string, body: unknown) {
  const bytes = Buffer.from(JSON.stringify(body));
  const headers = { 'content-type': 'application/json', 'content-length': bytes.length, [KEY_HEADER]: key };
  const sending = request(url + path, { method, headers });
  const answer = new Promise<{ status: number; body: string }>((resolve, reject) => {
    sending.on('error', reject);
    sending.on('response', async (response) => resolve({ status: response.statusCode!, body: await text(response) }));
  });
  sending.write(bytes.subarray(0, -1));
  return { finish: () => sending.end(bytes.subarray(-1)), answer };
}

const CALLS = [
  ['POST', MESSAGES, { messages: [message()] }, 401, 'UNAUTHORISED_REQUEST'],
  ['PUT', CONSENT, wanted(), 400, 'VALIDATION_ERROR'],
] as const;

it.each(CALLS)(
  'a request whose body is still arriving as %s %s stores nothing when its key is revoked before the last byte',
  // biome-ignore lint/complexity/useMaxParams: the columns of the table
  async (method, path, body, status, code) => {
    const gateway = await openGateway();
    const { finish, answer } = begin(gateway, method, path, body);
    await until('the body is arriving', async () => /bytes_in_flight\S+ [1-9]/.test(await gateway.metrics()));
    await revokeKey({ store: gateway.store }, OWNER);
    await until('the key has ended', async () => (await gateway.post({ messages: [message()] })).status === 401);
    gateway.producer.sent.length = 0;
    finish();
    const { status: answered, body: envelope } = await answer;
    expect({ answered, code: JSON.parse(envelope).code }).toEqual({ answered: status, code });
    expect(gateway.producer.sent).toEqual([]);
    expect(await gateway.metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
  },
);

it.each(CALLS)(
  'a request whose body is still arriving as %s %s is served when its key is valid all the time',
  async (method, path, body) => {
    const gateway = await openGateway();
    const { finish, answer } = begin(gateway, method, path, body);
    await until('the body is arriving', async () => /bytes_in_flight\S+ [1-9]/.test(await gateway.metrics()));
    finish();
    expect((await answer).status).toBeLessThan(300);
    expect(gateway.producer.sent).toHaveLength(1);
  },
);
