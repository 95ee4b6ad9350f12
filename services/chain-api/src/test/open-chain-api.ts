import { randomBytes } from 'node:crypto';
import { createUsageCounter } from '@playline/access-keys';
import { createDocsRoutes } from '@playline/api-docs';
import { type ActivityRow, type ChainStore, createCursors, type TokenRow, type Watermarks } from '@playline/chain';
import { createMemoryChain, openMemoryWatermarks, putActivities } from '@playline/chain/memory';
import { type HttpApp, openHttpServer } from '@playline/http';
import { createLogger, createMetrics } from '@playline/runtime';
import { expect, onTestFinished } from 'vitest';
import type { RateLimitKeys } from '../admit-call.ts';
import { type ChainApiSettings, createChainApiApp } from '../app.ts';
import { toChains } from '../chains.ts';
import { createChainDocs } from '../docs/source.ts';
import { createHorizons } from '../horizons.ts';
import { createChainApiMetrics, exportHorizons } from '../metrics.ts';
import type { TokenLookupParts } from '../token-lookup.ts';
import { createMintingWorld, type MintingWorld, SECRET_KEY_HEADER } from './minting-world.ts';

export const CHAIN = { name: 'demo-chain', id: 'eip155:31337' };
export const OTHER_CHAIN = { name: 'other-chain', id: 'eip155:1' };
const PARTITIONS = 6;
export const [PARTITION, OTHER_PARTITION] = toChains([CHAIN, OTHER_CHAIN], PARTITIONS).map(
  ({ partition }) => partition,
) as [number, number];

export interface HistoryPage {
  readonly result: readonly Readonly<Record<string, unknown> & { id: string }>[];
  readonly page: { readonly previous_cursor: string; readonly next_cursor: string };
}

export interface TestChainApi {
  readonly url: string;
  readonly port: number;
  readonly routes: HttpApp['routes'];
  readonly watermarks: Watermarks;
  readonly logLines: string[];
  readonly minting: MintingWorld;
  /** Calls an operation with the secret key. `path` is relative to `/v1/chains/demo-chain/collections`. */
  call(path: string, request?: CollectionRequest): Promise<Response>;
  /** Stores rows and publishes the watermark of the last row. */
  put(...rows: readonly ActivityRow[]): Promise<void>;
  putTokens(...rows: readonly TokenRow[]): Promise<void>;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** Reads a page of the activity history of the demo chain. Fails unless the status is 200. */
  history(query?: Readonly<Record<string, string>>): Promise<HistoryPage>;
  metrics(): Promise<string>;
  /** Called automatically after each test. */
  close(): Promise<void>;
}

export interface CollectionRequest {
  /** Sent unchanged if it is a string, otherwise as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface TestChainApiOptions extends Partial<ChainApiSettings> {
  rateLimitKeys?: RateLimitKeys;
  store?: Partial<ChainStore>;
  watermarks?: Partial<Watermarks>;
  createNode?: TokenLookupParts['createNode'];
  wallClockMs?: () => number;
  cursorSecret?: Buffer;
}

const NO_RATE_LIMIT_KEYS: RateLimitKeys = { find: async () => null };

const noNode: TokenLookupParts['createNode'] = () => {
  throw new Error('The test does not configure a chain node.');
};

const settings: ChainApiSettings = {
  READ_DEADLINE_MS: 5000,
  RATE_LIMIT_CALLS: 1500,
  RATE_LIMIT_WINDOW_S: 300,
  TRUSTED_PROXIES: 0,
  HTTP_HEADER_PREFIX: 'x-service',
  MINTS_PER_MINUTE: 200,
  MINTS_BURST: 2000,
  REFRESHES_PER_HOUR: 10_000,
  PUBLISH_DEADLINE_MS: 2500,
  MINTS_LISTED_AFTER_MS: 0,
  CHAIN_NODES: [],
  PUBLIC_URL: 'https://docs.test',
};

/** Shared by all tests, because generating the documentation takes longer than most tests. */
const docs = createDocsRoutes(() =>
  createChainDocs({
    publicUrl: settings.PUBLIC_URL,
    headerPrefix: settings.HTTP_HEADER_PREFIX,
    chains: [CHAIN, OTHER_CHAIN],
  }),
);

/** Opens a chain API with an in-memory store on a free port. Closes it after the test. */
export async function openChainApi(options: TestChainApiOptions = {}): Promise<TestChainApi> {
  const { rateLimitKeys = NO_RATE_LIMIT_KEYS, cursorSecret = randomBytes(32) } = options;
  const memory = createMemoryChain();
  const watermarks = { ...openMemoryWatermarks(), ...options.watermarks };
  // Simulates a writer that has started but has not written any rows.
  for (const partition of [PARTITION, OTHER_PARTITION]) await watermarks.publish(partition, 0);
  const registry = createMetrics('chain-api');
  const metrics = createChainApiMetrics(registry);
  const horizons = createHorizons({ watermarks, onFault: metrics.onStaleHorizon });
  const chains = toChains([CHAIN, OTHER_CHAIN], PARTITIONS);
  exportHorizons(registry, chains, horizons.lastKnown);
  const logLines: string[] = [];
  const minting = await createMintingWorld();
  const app = createChainApiApp({
    tracing: null,
    config: { ...settings, ...options },
    store: { ...memory.reader, ...options.store },
    createNode: options.createNode ?? noNode,
    ...(options.wallClockMs && { wallClockMs: options.wallClockMs }),
    cursors: createCursors({ keys: [{ id: 1, secret: cursorSecret }] }),
    readHorizon: horizons.read,
    logger: createLogger({ service: 'chain-api', level: 'info' }, { write: (line: string) => logLines.push(line) }),
    chains,
    docs,
    rateLimitKeys,
    metrics,
    usage: createUsageCounter(),
    verifySecret: minting.verifySecret,
    minting: minting.parts,
  });
  const server = await openHttpServer({ app, host: '127.0.0.1', port: 0 });
  onTestFinished(server.close);
  const url = `http://127.0.0.1:${server.port}`;
  const get: TestChainApi['get'] = (path, headers = {}) => fetch(`${url}/v1/chains${path}`, { headers });
  const { put, putTokens } = createPut(memory, watermarks);
  return {
    url,
    port: server.port,
    routes: app.routes,
    watermarks,
    logLines,
    put,
    putTokens,
    get,
    minting,
    call: createCall(url, minting),
    history: async (query = {}) => {
      const response = await get(`/${CHAIN.name}/activity-history?${new URLSearchParams(query)}`);
      expect(response.status).toBe(200);
      return (await response.json()) as HistoryPage;
    },
    metrics: registry.text,
    close: server.close,
  };
}

function createCall(url: string, { secretKey }: MintingWorld): TestChainApi['call'] {
  return (path, { body, headers = {} } = {}) => {
    const init =
      body === undefined ? {} : { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) };
    return fetch(`${url}/v1/chains/${CHAIN.name}/collections${path}`, {
      ...init,
      headers: { [SECRET_KEY_HEADER]: secretKey, 'content-type': 'application/json', ...headers },
    });
  };
}

function createPut(
  { activities }: ReturnType<typeof createMemoryChain>,
  watermarks: Pick<Watermarks, 'publish'>,
): Pick<TestChainApi, 'put' | 'putTokens'> {
  let block = 0;
  const blockOptions = () => ({ token: `block ${block++}`, signal: AbortSignal.timeout(10_000) });
  return {
    put: async (...rows) => {
      await putActivities(activities, rows);
      for (const { partition, updatedAt } of rows) await watermarks.publish(partition, updatedAt);
    },
    putTokens: (...rows) => activities.insert({ table: 'tokens', rows, ...blockOptions() }),
  };
}

export async function expectEnvelope(response: Response, code: string, details: unknown = null): Promise<void> {
  expect(await response.json()).toEqual({
    message: expect.any(String),
    link: `https://docs.test/docs/errors/${code}`,
    trace_id: response.headers.get('x-trace-id'),
    code,
    details,
  });
}
