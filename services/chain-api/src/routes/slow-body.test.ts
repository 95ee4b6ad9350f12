import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { revokeKey } from '@playline/access-keys';
import { until } from '@playline/testkit';
import { describe, expect, it } from 'vitest';
import { COLLECTION, collectionRecord, MINTS, mintBody, SECRET_KEY_HEADER } from '../test/minting-world.ts';
import { openChainApi, type TestChainApi } from '../test/open-chain-api.ts';

const metadata = {
  name: 'n',
  symbol: null,
  description: null,
  image: null,
  external_link: null,
  contract_uri: null,
  base_uri: null,
};
const REFRESH = `/${COLLECTION}/refresh-metadata`;
const CALLS = [
  [MINTS, mintBody('a')],
  [REFRESH, { collection_metadata: metadata }],
] as const;

/** Sends a request except for its last byte. */
async function startRequest({ url, minting }: TestChainApi, path: string, body: unknown) {
  const bytes = Buffer.from(JSON.stringify(body));
  const headers = { 'content-type': 'application/json', 'content-length': bytes.length };
  const key = { [SECRET_KEY_HEADER]: minting.secretKey };
  const target = `${url}/v1/chains/demo-chain/collections${path}`;
  const sending = request(target, { method: 'POST', headers: { ...headers, ...key, expect: '100-continue' } });
  const response = new Promise<{ status: number; code: string }>((resolve, reject) => {
    sending.on('error', reject);
    sending.on('response', async (incoming) => {
      resolve({ status: incoming.statusCode!, code: JSON.parse(await text(incoming)).code });
    });
  });
  await new Promise((resolve) => sending.once('continue', resolve).flushHeaders());
  sending.write(bytes.subarray(0, -1));
  return { finish: () => sending.end(bytes.subarray(-1)), response };
}

describe.each(CALLS)('a request to %s whose body is still arriving', (path, body) => {
  it('is rejected if its key is revoked', async () => {
    const api = await openChainApi();
    const { finish, response } = await startRequest(api, path, body);
    await revokeKey({ store: api.minting.keys }, { environmentId: 'demo-development', kind: 'secret' });
    await until('the key is revoked', async () => (await api.call(MINTS)).status === 401);
    finish();
    expect(await response).toEqual({ status: 401, code: 'UNAUTHORISED_REQUEST' });
    expect([...api.minting.requests, ...api.minting.metadata]).toEqual([]);
  });

  it.each([
    ['is unlinked', { state: 'unlinked' }, 404, 'RESOURCE_NOT_FOUND'],
    ['moves to another project', { projectId: 'other' }, 403, 'AUTHENTICATION_ERROR'],
  ] as const)('is rejected if its collection %s', async (_case, overrides, status, code) => {
    const api = await openChainApi();
    const { finish, response } = await startRequest(api, path, body);
    await until('the request is admitted', async () => (await api.call(MINTS)).status === 200);
    api.minting.collections.splice(0, 1, collectionRecord(COLLECTION, overrides));
    finish();
    expect(await response).toEqual({ status, code });
    expect([...api.minting.requests, ...api.minting.metadata]).toEqual([]);
  });
});
