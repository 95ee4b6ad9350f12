import { describe, expect, it } from 'vitest';
import { StoreFault } from '../store-fault.ts';
import { createClickHouseClientSetup, oneBlockSettings } from './clickhouse-client.ts';

const TARGET = { url: 'https://clickhouse.test', user: 'writer', password: 'secret', database: 'playline' };
const LIMITS = { executionMaxS: 60, connectionsMax: 4 };
const refusal = Object.assign(new Error('Authentication failed'), { code: '516', type: 'AUTHENTICATION_FAILED' });

describe('what every client of ClickHouse is told', () => {
  it('gives a call up after the server has given up its statement', () => {
    const { options } = createClickHouseClientSetup(TARGET, LIMITS);
    expect(options).toMatchObject({ request_timeout: 70_000, max_open_connections: 4, username: 'writer' });
  });

  it('has an agent of its own where there is TLS, which names the server', () => {
    expect(createClickHouseClientSetup(TARGET, LIMITS).options).not.toHaveProperty('http_agent');
    const tls = { ca: 'pem', servername: 'clickhouse.inside' };
    expect(createClickHouseClientSetup({ ...TARGET, tls }, LIMITS).options.http_agent?.options).toMatchObject(tls);
  });

  it('reports a fault as the client threw it, and throws it in the words of the store', async () => {
    const told: unknown[] = [];
    const setup = createClickHouseClientSetup({ ...TARGET, onFault: (fault) => told.push(fault) }, LIMITS);
    await expect(setup.call(() => Promise.reject(refusal))).rejects.toBeInstanceOf(StoreFault);
    expect(told).toEqual([refusal]);
    expect(await setup.call(async () => 'rows')).toBe('rows');
  });

  it('does not try a login again at once that was refused', async () => {
    let pings = 0;
    const setup = createClickHouseClientSetup(TARGET, LIMITS);
    const client = {
      ping: async () => {
        pings++;
        return { success: false, error: refusal } as const;
      },
    };
    expect([await setup.ready(client), await setup.ready(client), pings]).toEqual([false, false, 1]);
  });

  it('stores an insert as one block, however many rows it has', () => {
    const settings = oneBlockSettings('a token', 60);
    expect(settings).toMatchObject({ insert_deduplication_token: 'a token', max_insert_threads: '1', async_insert: 0 });
  });
});
