import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { openQueryClient } from './query-client.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** Starts a server that passes each request and its number, starting from 1, to `respond`. */
async function open(respond: (number: number, pair: { request: IncomingMessage; response: ServerResponse }) => void) {
  let requested = 0;
  const server = createServer((request, response) => {
    request.resume().on('end', () => respond(++requested, { request, response }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const faults: unknown[] = [];
  const onFault = (fault: unknown) => void faults.push(fault);
  const target = { url, user: 'u', password: 'p', database: 'd', onFault };
  const client = openQueryClient(target, { executionMaxS: 5, connectionsMax: 1 });
  closing.push(() => {
    client.close();
    server.close();
    server.closeAllConnections();
  });
  return { client, faults, requested: () => requested };
}

it('a query is retried when the server has just closed the idle connection', async () => {
  const { client, requested } = await open((number, { request, response }) => {
    if (number === 2) request.socket.resetAndDestroy();
    else response.setHeader('X-ClickHouse-Summary', '{"read_rows":"7"}').end(`result ${number}`);
  });
  expect(await client.query('SELECT 1', {}, {})).toEqual({ bytes: Buffer.from('result 1'), readRows: 7 });
  expect(String((await client.query('SELECT 1', {}, {})).bytes)).toBe('result 3');
  expect(requested()).toBe(3);
});

it('a query is sent at most twice when the server resets every connection', async () => {
  const { client, requested } = await open((_number, { request }) => request.socket.resetAndDestroy());
  await expect(client.query('SELECT 1', {}, {})).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(requested()).toBe(2);
});

it('a query to an unavailable server is not retried', async () => {
  const client = openQueryClient(
    { url: 'http://127.0.0.1:1', user: 'u', password: 'p', database: 'd' },
    { executionMaxS: 5, connectionsMax: 1 },
  );
  closing.push(() => client.close());
  await expect(client.query('SELECT 1', {}, {})).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

it('a query fails with the code that ClickHouse reports, and onFault is called', async () => {
  const { client, faults } = await open((_number, { response }) =>
    response.writeHead(404).end('Code: 60. DB::Exception: Table d.t does not exist. (UNKNOWN_TABLE) (version 26.7)'),
  );
  await expect(client.query('SELECT 1', {}, {})).rejects.toMatchObject({
    name: 'StoreFault',
    kind: 'permanent',
    code: 'UNKNOWN_TABLE',
  });
  expect(faults).toMatchObject([{ code: '60' }]);
});

it('a query fails when the response is truncated', async () => {
  const { client } = await open((_number, { request, response }) => {
    response.writeHead(200, { 'content-length': 100 }).write('part', () => request.socket.resetAndDestroy());
  });
  await expect(client.query('SELECT 1', {}, {})).rejects.toThrow();
});
