import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { openClickHouse, toClientOptions } from './clickhouse.ts';
import { StoreFault } from './store-fault.ts';

const TARGET = { url: 'https://clickhouse.test', user: 'writer', password: 'secret', database: 'playline' };
const LIMITS = { executionMaxS: 60, connectionsMax: 4 };

async function openRejectingServer() {
  const requests = { count: 0 };
  const server = createServer((_request, response) => {
    requests.count++;
    response.writeHead(403, { 'x-clickhouse-exception-code': '516' });
    response.end('Code: 516. DB::Exception: writer: Authentication failed. (AUTHENTICATION_FAILED)');
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const faults: unknown[] = [];
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const store = openClickHouse({ ...TARGET, url, onFault: (fault) => faults.push(fault) }, LIMITS);
  onTestFinished(async () => {
    await store.close();
    server.closeAllConnections();
    server.close();
  });
  return { store, requests, faults };
}

it('a ClickHouse call times out later than its statement on the server', () => {
  expect(toClientOptions(TARGET, LIMITS)).toMatchObject({ request_timeout: 70_000, max_open_connections: 4 });
});

it("a ClickHouse client with TLS uses its own agent with the server's name", () => {
  expect(toClientOptions(TARGET, LIMITS)).not.toHaveProperty('http_agent');
  const tls = { ca: 'pem', servername: 'clickhouse.inside' };
  expect(toClientOptions({ ...TARGET, tls }, LIMITS).http_agent?.options).toMatchObject(tls);
});

it('a rejected login is reported, thrown as a StoreFault without the password, and retried after a delay', async () => {
  const { store, requests, faults } = await openRejectingServer();
  const thrown = await store.read('SELECT 1').catch((fault: unknown) => fault);
  expect(thrown).toBeInstanceOf(StoreFault);
  expect(thrown).toMatchObject({ kind: 'transient', code: 'AUTHENTICATION_FAILED' });
  expect(String(thrown)).not.toContain('secret');
  expect(faults).toHaveLength(1);
  expect([await store.ready(), await store.ready(), requests.count]).toEqual([false, false, 2]);
});
