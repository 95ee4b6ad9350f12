import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openClickHouse, toClientOptions } from './clickhouse.ts';
import { StoreFault } from './store-fault.ts';

const TARGET = { url: 'https://clickhouse.test', user: 'writer', password: 'secret', database: 'playline' };
const LIMITS = { executionMaxS: 60, connectionsMax: 4 };

/** A server that refuses every login, and how often it was asked. */
async function openRefusing() {
  const asked = { times: 0 };
  const server = createServer((_request, response) => {
    asked.times++;
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
  return { store, asked, faults };
}

describe('a connection to ClickHouse', () => {
  it('gives a call up after the server has given up its statement', () => {
    expect(toClientOptions(TARGET, LIMITS)).toMatchObject({ request_timeout: 70_000, max_open_connections: 4 });
  });

  it('has an agent of its own where there is TLS, which names the server', () => {
    expect(toClientOptions(TARGET, LIMITS)).not.toHaveProperty('http_agent');
    const tls = { ca: 'pem', servername: 'clickhouse.inside' };
    expect(toClientOptions({ ...TARGET, tls }, LIMITS).http_agent?.options).toMatchObject(tls);
  });

  it('reports a fault as the client threw it, and throws a StoreFault without the password', async () => {
    const { store, faults } = await openRefusing();
    const thrown = await store.read('SELECT 1').catch((fault: unknown) => fault);
    expect(thrown).toBeInstanceOf(StoreFault);
    expect(thrown).toMatchObject({ kind: 'passing', code: 'AUTHENTICATION_FAILED' });
    expect(String(thrown)).not.toContain('secret');
    expect(faults).toHaveLength(1);
  });

  it('does not try a login again at once that was refused', async () => {
    const { store, asked } = await openRefusing();
    expect([await store.ready(), await store.ready(), asked.times]).toEqual([false, false, 1]);
  });
});
