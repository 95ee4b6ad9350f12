import { until } from '@playline/testkit';
import { expect } from 'vitest';
import { CHAIN, type HistoryPage } from '../../services/chain-api/src/test/open-chain-api.ts';
import { openProcess } from '../../services/chain-api/src/test/open-process.ts';
import { type ChainStores, openChainStores } from '../../services/chain-api/src/test/open-stores.ts';

/** A chain API process with separate stores. The `put…` functions write rows like the activity writer does. */
export interface ConformanceChainApi extends ChainStores {
  readonly url: string;
  /** Sends a GET request to a path below `/v1/chains/demo-chain`. */
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** Reads a page of the history. Expects status 200. */
  history(query?: Readonly<Record<string, string>>): Promise<HistoryPage>;
  /** Stops the process and deletes its stores. */
  close(): Promise<void>;
}

/** Starts a chain API. `settings` are environment variables that override the test defaults. */
export async function startChainApi(settings: Record<string, string> = {}): Promise<ConformanceChainApi> {
  const stores = await openChainStores();
  const api = await openProcess({ ...stores.environment, RATE_LIMIT_CALLS: '1000000', ...settings });
  const close = async () => {
    await api.close();
    await stores.close();
  };
  await until('the chain API is ready', async () => (await api.notReady()).length === 0).catch(async (error) => {
    await close();
    throw error;
  });
  const get: ConformanceChainApi['get'] = (path, headers) => api.get(`/${CHAIN.name}${path}`, headers);
  const history: ConformanceChainApi['history'] = async (query = {}) => {
    const response = await get(`/activity-history?${new URLSearchParams(query)}`);
    expect(response.status).toBe(200);
    return (await response.json()) as HistoryPage;
  };
  return { ...stores, url: api.url, get, history, close };
}

/** Expects an error envelope with the given status and code. */
export async function expectChainError(response: Response, status: number, code: string): Promise<void> {
  expect(response.status).toBe(status);
  expect(await response.json()).toEqual({
    message: expect.stringMatching(/./),
    link: expect.stringMatching(new RegExp(`^https?://.+/docs/errors/${code}$`)),
    trace_id: response.headers.get('x-trace-id'),
    code,
    details: status === 400 || status === 403 ? expect.any(Object) : null,
  });
}
