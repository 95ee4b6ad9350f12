import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { openMintApi } from './stage.ts';

async function openApi(...statuses: number[]) {
  const seen: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers['x-key'] as string | undefined);
    const status = statuses.shift() ?? 202;
    response.writeHead(status, status === 429 ? { 'retry-after': '1' } : {}).end('{"accepted":true}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const waits: string[] = [];
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const api = openMintApi(url, { 'x-key': 'secret' }, (why) => void waits.push(why));
  onTestFinished(async () => {
    api.close();
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });
  return { api, waits, seen };
}

it('a call of the chain API is repeated after 429, which accepts nothing, and after 500, which may have accepted the request', async () => {
  const { api, waits } = await openApi(429, 202, 500, 202);
  const answer = await api.call({ method: 'POST', path: '/', body: {} });
  expect(answer).toMatchObject({ status: 202, isDoubtful: false, json: { accepted: true } });
  expect(api.tally).toMatchObject({ calls: 2, refused: 1 });
  expect(api.tally.waitedMs).toBeGreaterThanOrEqual(1_000);
  expect(waits).toEqual([expect.stringContaining('429')]);
  expect(await api.call({ path: '/' })).toMatchObject({ status: 202, isDoubtful: true });
  expect(api.tally).toMatchObject({ calls: 4, refused: 1 });
});

it('a call of the chain API is made once when the answer is final, with its own headers instead of the common ones', async () => {
  const { api, seen } = await openApi(409, 401, 401);
  expect(await api.call({ path: '/' })).toMatchObject({ status: 409, isDoubtful: false });
  await api.call({ path: '/', headers: { 'x-key': 'hello' } });
  await api.call({ path: '/', headers: { 'x-key': null } });
  expect(seen).toEqual(['secret', 'hello', undefined]);
});
