import { until } from '@playline/testkit';
import { expect } from 'vitest';
import { CHAIN, type HistoryPage } from '../../services/chain-api/src/test/open-chain-api.ts';
import { openProcess } from '../../services/chain-api/src/test/open-process.ts';
import { type ChainStores, openChainStores } from '../../services/chain-api/src/test/open-stores.ts';

/** A chain API process with separate stores. The `put…` functions write as a writer does. */
export interface ConformanceChainApi extends ChainStores {
  readonly url: string;
  /** Requests a path below `/v1/chains/demo-chain`. */
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** Requests a page of the history. @throws Error when the answer is not 200 */
  history(query?: Readonly<Record<string, string>>): Promise<HistoryPage>;
  /** Stops the process and deletes its stores. */
  close(): Promise<void>;
}

/** Starts a chain API. `settings` are environment variables that override those for tests. */
export async function startChainApi(settings: Record<string, string> = {}): Promise<ConformanceChainApi> {
  const stores = await openChainStores();
  const api = await openProcess({ ...stores.environment, RATE_LIMIT_CALLS: '1000000', ...settings });
  const close = async () => {
    await api.close();
    await stores.close();
  };
  await until('the chain API is ready', async () => (await api.notReady()).length === 0).catch(async (fault) => {
    await close();
    throw fault;
  });
  const get: ConformanceChainApi['get'] = (path, headers) => api.get(`/${CHAIN.name}${path}`, headers);
  const history: ConformanceChainApi['history'] = async (query = {}) => {
    const answer = await get(`/activity-history?${new URLSearchParams(query)}`);
    expect(answer.status).toBe(200);
    return (await answer.json()) as HistoryPage;
  };
  return { ...stores, url: api.url, get, history, close };
}

/** Expects an answer with the envelope of a code. */
export async function expectChainFault(answer: Response, status: number, code: string): Promise<void> {
  expect(answer.status).toBe(status);
  expect(await answer.json()).toEqual({
    message: expect.stringMatching(/./),
    link: expect.stringMatching(new RegExp(`^https?://.+/docs/errors/${code}$`)),
    trace_id: answer.headers.get('x-trace-id'),
    code,
    details: status === 400 || status === 403 ? expect.any(Object) : null,
  });
}
